// A subset of @std/path, faithful to its declarations.
export function join(path: string | URL, ...paths: string[]): string;
export function dirname(path: string | URL): string;
export function basename(path: string | URL, suffix?: string): string;
export function extname(path: string | URL): string;
export function resolve(...pathSegments: string[]): string;
export function relative(from: string, to: string): string;
export function isAbsolute(path: string): boolean;
export function normalize(path: string | URL): string;
export function fromFileUrl(url: string | URL): string;
export function toFileUrl(path: string): URL;
