/**
 * Figures over the course of a replay, few enough to draw.
 *
 * @module
 */

import type { Timeline } from "./report_data.ts";
import type { Workload } from "./workload.ts";

/** Most points of a timeline. */
const MOST_POINTS = 2_000;

/** Gathers a timeline: the peak of each stretch of steps. */
export class TimelineRecorder {
  /** The timeline so far. */
  readonly timeline: Timeline = {
    step: [],
    timeUs: [],
    live: [],
    mapped: [],
    reserved: [],
    largestFree: [],
  };
  readonly #workload: Workload;
  readonly #stretch: number;
  readonly #largestFree: (() => number) | undefined;
  #live = 0;
  #mapped = 0;
  #reserved = 0;

  /** A timeline of a workload; `largestFree` is asked at the end of each stretch. */
  constructor(workload: Workload, largestFree?: () => number) {
    this.#workload = workload;
    this.#stretch = Math.max(1, Math.ceil(workload.steps / MOST_POINTS));
    this.#largestFree = largestFree;
  }

  /** Notes the figures after a step. Every step must be noted, in order. */
  note(step: number, live: number, mapped: number): void {
    const { reserved, steps } = this.#workload;
    if (live > this.#live) this.#live = live;
    if (mapped > this.#mapped) this.#mapped = mapped;
    if (reserved.length > 0 && reserved[step]! > this.#reserved) {
      this.#reserved = reserved[step]!;
    }
    const next = step + 1;
    if (next % this.#stretch === 0 || next === steps) this.#close(step);
  }

  #close(step: number): void {
    const { timeline } = this;
    timeline.step.push(step);
    timeline.timeUs.push(this.#workload.timeUs[step]!);
    timeline.live.push(this.#live);
    timeline.mapped.push(this.#mapped);
    if (this.#workload.reserved.length > 0) {
      timeline.reserved.push(this.#reserved);
    }
    if (this.#largestFree) timeline.largestFree.push(this.#largestFree());
    this.#live = this.#mapped = this.#reserved = 0;
  }
}
