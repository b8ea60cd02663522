/**
 * What this process holds of the system.
 *
 * @module
 */

/** Figures of this process. */
export interface ProcessFigures {
  /** Bytes of memory of its own, what maps files and devices left out. */
  memory: number;
  /** Open file descriptors. */
  descriptors: number;
  /** Threads. */
  threads: number;
  /** Areas of its address space. */
  areas: number;
}

/** Reads the figures, after a garbage collection where the engine offers one. */
export function processFigures(): ProcessFigures {
  const { gc } = globalThis as { gc?: () => void };
  gc?.();
  const status = Deno.readTextFileSync("/proc/self/status");
  const figure = (name: string) =>
    Number(new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(status)?.[1] ?? 0);
  return {
    memory: figure("RssAnon") * 1024,
    descriptors: [...Deno.readDirSync("/proc/self/fd")].length,
    threads: figure("Threads"),
    areas: Deno.readTextFileSync("/proc/self/maps").split("\n").length - 1,
  };
}
