// A subset of @std/fmt/colors, faithful to its declarations.
export function setColorEnabled(value: boolean): void;
export function getColorEnabled(): boolean;
export function bold(str: string): string;
export function dim(str: string): string;
export function italic(str: string): string;
export function underline(str: string): string;
export function red(str: string): string;
export function green(str: string): string;
export function yellow(str: string): string;
export function blue(str: string): string;
export function magenta(str: string): string;
export function cyan(str: string): string;
export function gray(str: string): string;
export function stripAnsiCode(string: string): string;
