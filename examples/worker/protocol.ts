/**
 * What the main thread and the worker say to each other.
 *
 * @module
 */

/** Numbers whose memory can be moved between threads. */
export type Floats = Float32Array<ArrayBuffer>;

/** A request: numbers to be added up in pairs. */
export interface Job {
  /** Number of the job, returned with its result. */
  id: number;
  /** First addends. */
  a: Floats;
  /** Second addends, as many. */
  b: Floats;
}

/** A result, or why there is none. */
export type Answer =
  | { id: number; sum: Floats }
  | { id: number; error: string };
