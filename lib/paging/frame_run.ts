/**
 * Runs of frames with reference counts. A run is shared as a whole for as long as
 * possible; only once a part of it has another count than the rest are its frames
 * counted one by one. So a fork costs a step per run, not per page.
 *
 * @module
 */

/** Part of a run, as a range of pages has it. Never changed: ranges share them. */
export interface Piece {
  /** The run. */
  readonly run: FrameRun;
  /** First frame of the part within the run. */
  readonly offset: number;
  /** Number of frames. */
  readonly count: number;
}

/** Neighbouring frames that were taken together; as a piece, all of them. */
export class FrameRun implements Piece {
  /** Number of the first frame. */
  readonly first: number;
  /** Number of frames. */
  readonly count: number;
  /**
   * Streams whose ranges gave up frames of the run and may still be reading them: of each
   * the epoch at which it last did.
   */
  formerUsers: Map<number, number> | undefined = undefined;
  /** References to every frame, while they are equal. */
  private references = 1;
  /** References to each frame, once they differ. */
  private each: Uint32Array | undefined = undefined;

  /** A run with one reference to each frame. */
  constructor(first: number, count: number) {
    this.first = first;
    this.count = count;
  }

  /** The run itself. */
  get run(): FrameRun {
    return this;
  }

  /** A whole run begins at its beginning. */
  get offset(): number {
    return 0;
  }

  /** Notes that a range of a stream gave up frames of the run at an epoch. */
  addFormerUser(stream: number, epoch: number): void {
    (this.formerUsers ??= new Map()).set(stream, epoch);
  }

  /** References to the frame at an offset. */
  referencesAt(offset: number): number {
    return this.each ? this.each[offset]! : this.references;
  }

  /** Whether any frame of a part has more than one reference. */
  isShared(offset: number, count: number): boolean {
    if (!this.each) return this.references > 1;
    for (let i = offset; i < offset + count; i++) {
      if (this.each[i]! > 1) return true;
    }
    return false;
  }

  /** Adds a reference to each frame of a part. */
  retain(offset: number, count: number): void {
    if (!this.each && count === this.count) {
      this.references++;
      return;
    }
    const each = this.countEach();
    for (let i = offset; i < offset + count; i++) each[i]!++;
  }

  /** Drops a reference to each frame of a part; tells runs of frames that have none left. */
  release(
    offset: number,
    count: number,
    freed: (first: number, count: number) => void,
  ): void {
    if (!this.each && count === this.count) {
      if (--this.references === 0) freed(this.first, this.count);
      return;
    }
    const each = this.countEach();
    let start = -1;
    for (let i = offset; i < offset + count; i++) {
      if (--each[i]! === 0) {
        if (start < 0) start = i;
      } else if (start >= 0) {
        freed(this.first + start, i - start);
        start = -1;
      }
    }
    if (start >= 0) freed(this.first + start, offset + count - start);
  }

  private countEach(): Uint32Array {
    this.each ??= new Uint32Array(this.count).fill(this.references);
    return this.each;
  }
}

/** The pieces of [from, to) of pages that consist of the given pieces. */
export function slicePieces(
  pieces: readonly Piece[],
  from: number,
  to: number,
): Piece[] {
  const slice: Piece[] = [];
  let page = 0;
  for (const { run, offset, count } of pieces) {
    const first = Math.max(from, page);
    const end = Math.min(to, page + count);
    if (first < end) {
      slice.push({ run, offset: offset + first - page, count: end - first });
    }
    page += count;
    if (page >= to) break;
  }
  return slice;
}
