import type { Work } from "./device_streams.ts";
import type { Stream } from "./scheduler.ts";

/** An operation that a graph holds. */
export interface CapturedWork {
  /** What it is, for messages. */
  label: string;
  /** What it does, each time anew. */
  work: Work;
}

/** The streams that note work for a graph instead of doing it. */
export class Captures {
  readonly #noted = new Map<Stream, CapturedWork[]>();

  /** Whether the stream is capturing. */
  has(stream: Stream): boolean {
    return this.#noted.has(stream);
  }

  /** Makes the stream note its work. */
  begin(stream: Stream): void {
    this.#noted.set(stream, []);
  }

  /** Ends a capture; gives what was noted, undefined if there was no capture. */
  end(stream: Stream): CapturedWork[] | undefined {
    const noted = this.#noted.get(stream);
    this.#noted.delete(stream);
    return noted;
  }

  /** Notes work of a stream; false if it is not capturing. */
  note(stream: Stream, captured: CapturedWork): boolean {
    const noted = this.#noted.get(stream);
    noted?.push(captured);
    return noted !== undefined;
  }

  /** Refuses a use of a capturing stream that no graph can hold. */
  refuse(operation: string, stream: Stream): void {
    if (!this.has(stream)) return;
    throw new RangeError(
      `Cannot ${operation}: the stream is capturing, and a graph can't hold ` +
        "that; end the capture first",
    );
  }

  /** Refuses, during a capture, what waits for all streams. */
  refuseAny(operation: string): void {
    if (this.#noted.size === 0) return;
    throw new RangeError(
      `Cannot ${operation}: it waits for all streams, and ` +
        `${this.#noted.size} of them are capturing; end the captures first`,
    );
  }

  /** Ends all captures. */
  clear(): void {
    this.#noted.clear();
  }
}
