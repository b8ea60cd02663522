/**
 * Recording what a program allocates, as a trace that `moonbright replay` reads.
 *
 * @module
 */

import type { AllocationObserver } from "../allocator.ts";
import { BlockState } from "../blocks.ts";
import { MoonBrightError } from "../errors.ts";
import type { MoonBright } from "../moonbright.ts";
import { TraceAction } from "./trace.ts";
import { eventLine, headerLine, streamLine } from "./write_trace.ts";

/** A recording under way. */
export interface TraceRecording extends Disposable {
  /** Lines written so far. */
  readonly lines: number;
  /**
   * Ends the recording. Does nothing the second time.
   *
   * @throws what `write` threw, which ended the recording before
   */
  stop(): void;
}

/**
 * Records every allocation and free of an instance from now on, as lines of MoonBright's
 * own trace format (see `write_trace.ts`). Blocks that are live already are recorded as
 * allocated now; a change of size as a free and an allocation. Streams have the names of
 * their numbers, times are microseconds since the process began. `write` is called with
 * one line at a time, within the allocation or free, and should only put it away.
 *
 * @example
 * ```ts
 * import { MoonBright, recordTrace } from "@moonbright/moonbright";
 *
 * using mb = MoonBright.open({ device: "host" });
 * const lines: string[] = [];
 * {
 *   using recording = recordTrace(mb, (line) => lines.push(line));
 *   mb.alloc(1024).free();
 * }
 * // Deno.writeTextFileSync("run.trace", lines.join(""));
 * ```
 *
 * @throws {MoonBrightError} code `limit` if the instance is being recorded already
 */
export function recordTrace(
  mb: MoonBright,
  write: (line: string) => void,
): TraceRecording {
  mb.assertOpen("record");
  const { allocator } = mb;
  if (allocator.observer !== undefined) {
    throw new MoonBrightError(
      "limit",
      "record",
      "Cannot record: the instance is being recorded already; stop that recording first",
    );
  }
  const recorder = new Recorder(mb, write);
  allocator.observer = recorder;
  recorder.begin();
  return recorder;
}

class Recorder implements AllocationObserver, TraceRecording {
  lines = 0;
  readonly #mb: MoonBright;
  readonly #write: (line: string) => void;
  #streams = 0;
  #failed: { error: unknown } | undefined;

  constructor(mb: MoonBright, write: (line: string) => void) {
    this.#mb = mb;
    this.#write = write;
  }

  begin(): void {
    this.#line(() =>
      headerLine({ device: this.#mb.device.ordinal, streams: [] })
    );
    const { blocks } = this.#mb.allocator;
    for (let id = 1; id < blocks.end; id++) {
      if (blocks.state[id] === BlockState.LIVE) this.allocated(id);
    }
  }

  allocated(id: number): void {
    const { blocks } = this.#mb.allocator;
    this.#event(
      TraceAction.ALLOC,
      blocks.address[id]!,
      blocks.requested[id]!,
      blocks.stream[id]!,
    );
  }

  freed(address: number, requested: number, stream: number): void {
    this.#event(TraceAction.FREE, address, requested, stream);
  }

  refused(requested: number, deviceFree: number, stream: number): void {
    this.#event(TraceAction.OOM, deviceFree, requested, stream);
  }

  stop(): void {
    const { allocator } = this.#mb;
    if (allocator.observer === this) allocator.observer = undefined;
    const failed = this.#failed;
    this.#failed = undefined;
    if (failed) throw failed.error;
  }

  [Symbol.dispose](): void {
    this.stop();
  }

  #event(
    action: TraceAction,
    address: number,
    bytes: number,
    stream: number,
  ): void {
    while (this.#streams <= stream) {
      const name = String(this.#streams++);
      this.#line(() => streamLine(name));
    }
    const timeUs = performance.now() * 1e3;
    this.#line(() => eventLine(action, address, bytes, stream, timeUs));
  }

  /** The allocator is in the middle of a request: a line that can't be written ends the recording. */
  #line(make: () => string): void {
    if (this.#failed) return;
    try {
      this.#write(make());
      this.lines++;
    } catch (error) {
      this.#failed = { error };
    }
  }
}
