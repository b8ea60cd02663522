/**
 * The C sources as text, so that they can be compiled where MoonBright runs, also when
 * it was loaded from a registry and not from files.
 *
 * @module
 */

import { KERNELS } from "./embedded/kernels.ts";
import { SHIM } from "./embedded/shim.ts";

/** Sources by file name. */
export type Sources = Readonly<Record<string, string>>;

/** The shim's sources, `native/`. */
export const SHIM_SOURCES: Sources = SHIM;

/** The kernels' sources, `kernels/`. */
export const KERNEL_SOURCES: Sources = KERNELS;
