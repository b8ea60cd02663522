import type { Driver } from "../../lib/driver.ts";
import { Random } from "../model/random.ts";
import { assertSameBytes, type ContractCase, testBytes } from "./harness.ts";

const slots = 24;
const longestOperation = 2 ** 16;

interface KnownExtent {
  id: number;
  granules: number;
  /** What it must hold. */
  bytes: Uint8Array;
  mappings: number;
}

interface KnownMapping {
  /** First slot of the reservation that it takes. */
  slot: number;
  extent: KnownExtent;
}

/** Takes a random course through a driver and keeps a plain record beside it. */
class History {
  readonly #driver: Driver;
  readonly #random: Random;
  readonly #granularity: number;
  readonly #base: number;
  readonly #streams: number[];
  readonly #event: number;
  #lastStream = 0;
  #extents: KnownExtent[] = [];
  #mappings: KnownMapping[] = [];

  constructor(driver: Driver, seed: number) {
    this.#driver = driver;
    this.#random = new Random(seed);
    this.#granularity = driver.info.granularity;
    this.#base = driver.reserve(slots * this.#granularity);
    this.#streams = [0, driver.createStream(), driver.createStream()];
    this.#event = driver.createEvent();
  }

  step(): void {
    const turn = this.#random.below(10);
    if (turn === 0) this.#create();
    else if (turn === 1) this.#release();
    else if (turn <= 3) this.#map();
    else if (turn === 4) this.#unmap();
    else if (turn === 5) this.#fill();
    else if (turn === 6) this.#copyIn();
    else if (turn === 7) this.#copy();
    else this.#compare();
  }

  end(): void {
    for (const { slot, extent } of this.#mappings) {
      this.#compareRange(
        slot * this.#granularity,
        extent.bytes.length,
      );
    }
  }

  /** A stream whose next operation comes after all that was queued so far. */
  #ordered(): number {
    const stream = this.#streams[this.#random.below(3)]!;
    if (stream !== this.#lastStream) {
      this.#driver.recordEvent(this.#event, this.#lastStream);
      this.#driver.waitEvent(stream, this.#event);
    }
    this.#lastStream = stream;
    return stream;
  }

  #create(): void {
    if (this.#extents.length >= 12) return;
    const counts = Array.from(
      { length: 1 + this.#random.below(3) },
      () => 1 + this.#random.below(3),
    );
    const ids = this.#driver.createExtents(
      counts.map((count) => count * this.#granularity),
    );
    ids.forEach((id, at) =>
      this.#extents.push({
        id,
        granules: counts[at]!,
        bytes: new Uint8Array(0),
        mappings: 0,
      })
    );
  }

  #release(): void {
    const loose = this.#extents.filter((one) =>
      one.mappings === 0 && this.#random.below(2) === 0
    );
    if (loose.length === 0) return;
    this.#driver.releaseExtents(loose.map((one) => one.id));
    this.#extents = this.#extents.filter((one) => !loose.includes(one));
  }

  #map(): void {
    const chosen = Array.from(
      { length: 1 + this.#random.below(2) },
      () => this.#extents[this.#random.below(this.#extents.length)],
    ).filter((one) => one !== undefined);
    const granules = chosen.reduce((sum, one) => sum + one.granules, 0);
    if (granules === 0) return;
    const slot = this.#random.below(slots - granules);
    const inTheWay = this.#mappings.some((one) =>
      one.slot < slot + granules && slot < one.slot + one.extent.granules
    );
    if (inTheWay) return;
    this.#driver.map(
      this.#base + slot * this.#granularity,
      chosen.map((one) => one.id),
    );
    let at = slot;
    for (const extent of chosen) {
      this.#mappings.push({ slot: at, extent });
      extent.mappings++;
      if (extent.bytes.length === 0) {
        extent.bytes = testBytes(extent.granules * this.#granularity, at);
        this.#driver.copyIn(
          this.#base + at * this.#granularity,
          extent.bytes,
          this.#ordered(),
        );
      }
      at += extent.granules;
    }
  }

  #unmap(): void {
    const chosen = this.#mappings.filter(() => this.#random.below(3) === 0);
    if (chosen.length === 0) return;
    this.#driver.synchronizeStream(this.#lastStream);
    this.#driver.unmap(chosen.map(({ slot, extent }) => ({
      address: this.#base + slot * this.#granularity,
      size: extent.bytes.length,
    })));
    for (const { extent } of chosen) extent.mappings--;
    this.#mappings = this.#mappings.filter((one) => !chosen.includes(one));
  }

  /** A piece of mapped memory, as an offset from the base. */
  #piece(): { offset: number; length: number } | undefined {
    const start = this.#mappings[this.#random.below(this.#mappings.length)];
    if (!start) return undefined;
    const offset = start.slot * this.#granularity +
      4 * this.#random.below(start.extent.bytes.length / 4);
    // An extent twice in one range would leave open which of its bytes win.
    const extents = new Set<KnownExtent>();
    let end = start.slot;
    let next: KnownMapping | undefined = start;
    while (next && !extents.has(next.extent)) {
      extents.add(next.extent);
      end = next.slot + next.extent.granules;
      next = this.#mappings.find((one) => one.slot === end);
    }
    const room = end * this.#granularity - offset;
    const length = 1 + this.#random.below(Math.min(room, longestOperation));
    return { offset, length };
  }

  /** The record's bytes of a range, extent by extent. */
  *#recorded(offset: number, length: number): Generator<Uint8Array> {
    for (let at = offset; at < offset + length;) {
      const { slot, extent } = this.#mappings.find((one) =>
        at >= one.slot * this.#granularity &&
        at < (one.slot + one.extent.granules) * this.#granularity
      )!;
      const start = at - slot * this.#granularity;
      const part = extent.bytes.subarray(start, start + offset + length - at);
      yield part;
      at += part.length;
    }
  }

  #record(offset: number, bytes: Uint8Array): void {
    let done = 0;
    for (const part of this.#recorded(offset, bytes.length)) {
      part.set(bytes.subarray(done, done + part.length));
      done += part.length;
    }
  }

  #expected(offset: number, length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    let done = 0;
    for (const part of this.#recorded(offset, length)) {
      bytes.set(part, done);
      done += part.length;
    }
    return bytes;
  }

  #fill(): void {
    const piece = this.#piece();
    if (!piece) return;
    const width = ([1, 2, 4] as const)[this.#random.below(3)]!;
    const count = Math.floor(piece.length / width);
    if (count === 0) return;
    const value = this.#random.below(2 ** (8 * width));
    this.#driver.fill(
      this.#base + piece.offset,
      value,
      width,
      count,
      this.#ordered(),
    );
    this.#record(
      piece.offset,
      Uint8Array.from(
        { length: count * width },
        (_, at) => value >>> (8 * (at % width)),
      ),
    );
  }

  #copyIn(): void {
    const piece = this.#piece();
    if (!piece) return;
    const bytes = testBytes(piece.length, this.#random.below(1000));
    this.#driver.copyIn(this.#base + piece.offset, bytes, this.#ordered());
    this.#record(piece.offset, bytes);
  }

  #copy(): void {
    const [to, from] = [this.#piece(), this.#piece()];
    if (!to || !from) return;
    const length = Math.min(to.length, from.length);
    // Through another mapping of one extent, even ranges apart may overlap.
    const source = [...this.#recorded(from.offset, length)];
    const overlap = [...this.#recorded(to.offset, length)].some((part) =>
      source.some((other) =>
        part.buffer === other.buffer &&
        part.byteOffset < other.byteOffset + other.length &&
        other.byteOffset < part.byteOffset + part.length
      )
    );
    if (overlap) return;
    this.#driver.copy(
      this.#base + to.offset,
      this.#base + from.offset,
      length,
      this.#ordered(),
    );
    this.#record(to.offset, this.#expected(from.offset, length));
  }

  #compare(): void {
    const piece = this.#piece();
    if (piece) this.#compareRange(piece.offset, piece.length);
  }

  #compareRange(offset: number, length: number): void {
    const bytes = new Uint8Array(length);
    this.#driver.copyOut(bytes, this.#base + offset, this.#ordered());
    assertSameBytes(bytes, this.#expected(offset, length));
  }
}

/** Random courses, each repeatable by its seed. */
export const historyCases: ContractCase[] = [1, 2, 3].map((seed) => ({
  name: `a random history matches a plain record (seed ${seed})`,
  check(driver) {
    const history = new History(driver, seed);
    for (let step = 0; step < 400; step++) history.step();
    history.end();
  },
}));
