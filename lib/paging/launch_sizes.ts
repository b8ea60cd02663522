/**
 * Grids and blocks for the paging kernels.
 *
 * @module
 */

import type { LaunchGeometry } from "../driver.ts";

/** Threads of a block, a multiple of every GPU's warp. */
const THREADS = 256;

/** Blocks that a processor runs at once. */
const RESIDENT_BLOCKS = 8;

/** The host runs threads one after another: one does the work of a block. */
const HOST_THREADS = 1;

/** Blocks beyond these bring no more speed: each takes several pieces of work. */
const MOST_BLOCKS = 8192;

/** Items that each thread takes where there are many; as in `kernels/paging_entries.c`. */
const ITEMS_PER_THREAD = 8;

/** Runs of a list are spread over as many processors as there are warps of this many. */
const LIST_THREADS = 64;

/** Bytes that a block copies at a time; as in `kernels/paging_copy.c`. */
const COPY_BYTES = 16384;

function geometry(blocks: number, threads: number): LaunchGeometry {
  return {
    grid: [Math.max(1, Math.min(MOST_BLOCKS, Math.ceil(blocks)))],
    block: [threads],
  };
}

/** Whether a backend runs kernels on the host's processor. */
function isHost(backend: string): boolean {
  return backend === "host" || backend === "model";
}

/**
 * For the kernels that write `count` entries of a table in the order of their
 * numbers: `mb_materialize`, `mb_invalidate`, `mb_protect`.
 *
 * @param processors the device's, from its `DeviceInfo`
 */
export function entriesGeometry(
  count: number,
  backend: string,
  processors: number,
): LaunchGeometry {
  if (isHost(backend)) return geometry(1, HOST_THREADS);
  // Threads take two entries at a time. A launch that fills the device once gets a
  // thread for each two; beyond, threads take several, close together.
  const pairs = count / 2;
  const residentThreads = processors * RESIDENT_BLOCKS * THREADS;
  return geometry(
    pairs <= residentThreads
      ? pairs / THREADS
      : pairs / (THREADS * ITEMS_PER_THREAD),
    THREADS,
  );
}

/** For `mb_materialize_list`. */
export function listGeometry(
  runCount: number,
  backend: string,
): LaunchGeometry {
  if (isHost(backend)) return geometry(1, HOST_THREADS);
  return geometry(runCount / LIST_THREADS, LIST_THREADS);
}

/** For the kernels that copy: `mb_gather`, `mb_scatter`, `mb_copy_pages`. */
export function copyGeometry(bytes: number, backend: string): LaunchGeometry {
  if (isHost(backend)) return geometry(1, HOST_THREADS);
  // One more: pieces are cut at multiples of their size, also where the bytes are not.
  return geometry(Math.ceil(bytes / COPY_BYTES) + 1, THREADS);
}

/**
 * For the kernels that only read, and add up what they read: `mb_checksum`,
 * `mb_read_direct`, `mb_read_paged`, `mb_translate_each`. No more threads than the device
 * runs at once, since each warp adds to the same word.
 *
 * @param processors the device's, from its `DeviceInfo`
 */
export function readGeometry(
  bytes: number,
  backend: string,
  processors: number,
): LaunchGeometry {
  if (isHost(backend)) return geometry(1, HOST_THREADS);
  return geometry(
    Math.min(bytes / (16 * THREADS), processors * RESIDENT_BLOCKS),
    THREADS,
  );
}
