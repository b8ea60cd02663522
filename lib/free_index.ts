/**
 * The free blocks of one stream by size: finds the smallest class that fits in
 * constant time (two bitmaps), and walks blocks that hold whole extents in
 * ascending order.
 *
 * @module
 */

import { type Blocks, BlockState } from "./blocks.ts";
import { CLASSES, classOf, LEVELS, STEP_BITS, STEPS } from "./size_classes.ts";

/** How many blocks of a class are looked at before a larger class is tried. */
const BEST_FIT_TRIES = 32;

/** Free blocks of one stream, listed by size class. */
export class FreeIndex {
  /** Bytes of all listed blocks. */
  bytes = 0;
  /** Bytes of whole extents in listed blocks. */
  wholeBytes = 0;
  /** Number of listed blocks. */
  count = 0;

  readonly #blocks: Blocks;
  readonly #heads = new Int32Array(CLASSES);
  readonly #steps = new Int32Array(LEVELS);
  #levels = 0;

  /** An empty index over a table of blocks. */
  constructor(blocks: Blocks) {
    this.#blocks = blocks;
  }

  /** Lists a free block. Its size, whole bytes and stream must be set. */
  insert(id: number): void {
    const blocks = this.#blocks;
    const size = blocks.size[id]!;
    this.#link(id, classOf(size));
    this.bytes += size;
    this.wholeBytes += blocks.whole[id]!;
    this.count++;
  }

  /** Takes a block off its list. */
  remove(id: number): void {
    const blocks = this.#blocks;
    const size = blocks.size[id]!;
    this.#unlink(id, classOf(size));
    this.bytes -= size;
    this.wholeBytes -= blocks.whole[id]!;
    this.count--;
  }

  /** Gives a listed block another size and other whole bytes. */
  resize(id: number, size: number, whole: number): void {
    const blocks = this.#blocks;
    const before = blocks.size[id]!;
    const from = classOf(before);
    const to = classOf(size);
    if (from !== to) this.#unlink(id, from);
    this.bytes += size - before;
    this.wholeBytes += whole - blocks.whole[id]!;
    blocks.size[id] = size;
    blocks.whole[id] = whole;
    if (from !== to) this.#link(id, to);
  }

  #link(id: number, sizeClass: number): void {
    const blocks = this.#blocks;
    const head = this.#heads[sizeClass]!;
    blocks.listPrevious[id] = 0;
    blocks.listNext[id] = head;
    if (head !== 0) blocks.listPrevious[head] = id;
    else {
      const level = sizeClass >> STEP_BITS;
      this.#steps[level]! |= 1 << (sizeClass & (STEPS - 1));
      this.#levels |= 1 << level;
    }
    this.#heads[sizeClass] = id;
  }

  #unlink(id: number, sizeClass: number): void {
    const blocks = this.#blocks;
    const previous = blocks.listPrevious[id]!;
    const next = blocks.listNext[id]!;
    if (next !== 0) blocks.listPrevious[next] = previous;
    if (previous !== 0) blocks.listNext[previous] = next;
    else {
      this.#heads[sizeClass] = next;
      if (next === 0) {
        const level = sizeClass >> STEP_BITS;
        const steps = this.#steps[level]! & ~(1 << (sizeClass & (STEPS - 1)));
        this.#steps[level] = steps;
        if (steps === 0) this.#levels &= ~(1 << level);
      }
    }
  }

  /**
   * A block that fits tightly, 0 if none fits at all. The size's own class holds
   * blocks up to 3 % smaller too, so only some of it is searched unless it is the
   * last resort.
   */
  find(size: number): number {
    const sizeClass = classOf(size);
    const head = this.#heads[sizeClass]!;
    if (head !== 0) {
      if (this.#blocks.size[head] === size) return head;
      const best = this.#bestOf(head, size, BEST_FIT_TRIES);
      if (best !== 0) return best;
    }
    const larger = this.#nextClass(sizeClass + 1);
    if (larger >= 0) {
      return this.#bestOf(this.#heads[larger]!, size, BEST_FIT_TRIES);
    }
    return head === 0 ? 0 : this.#bestOf(head, size, Infinity);
  }

  /** The largest block, 0 if there is none. Looks through one class. */
  largest(): number {
    if (this.#levels === 0) return 0;
    const level = 31 - Math.clz32(this.#levels);
    const step = 31 - Math.clz32(this.#steps[level]!);
    const blocks = this.#blocks;
    let best = 0;
    let id = this.#heads[(level << STEP_BITS) | step]!;
    for (; id !== 0; id = blocks.listNext[id]!) {
      if (best === 0 || blocks.size[id]! > blocks.size[best]!) best = id;
    }
    return best;
  }

  /** Blocks of at least `size` bytes, class by class upwards. Don't change the index meanwhile. */
  *ascending(size: number): Generator<number> {
    for (let id = this.first(size); id !== 0; id = this.after(id)) {
      if (this.#blocks.size[id]! >= size) yield id;
    }
  }

  /**
   * The first block in ascending order of classes from the class of `size` on, 0 if
   * there is none. Within its first class blocks may be smaller than `size`.
   */
  first(size: number): number {
    const sizeClass = this.#nextClass(classOf(size));
    return sizeClass < 0 ? 0 : this.#heads[sizeClass]!;
  }

  /** The block behind a listed one in ascending order of classes, 0 if it is the last. */
  after(id: number): number {
    const next = this.#blocks.listNext[id]!;
    if (next !== 0) return next;
    const sizeClass = this.#nextClass(classOf(this.#blocks.size[id]!) + 1);
    return sizeClass < 0 ? 0 : this.#heads[sizeClass]!;
  }

  /** Throws if the index contradicts itself. For tests. */
  assertInvariants(): void {
    const blocks = this.#blocks;
    let bytes = 0;
    let whole = 0;
    let count = 0;
    for (let sizeClass = 0; sizeClass < CLASSES; sizeClass++) {
      const level = sizeClass >> STEP_BITS;
      const marked =
        (this.#steps[level]! >>> (sizeClass & (STEPS - 1)) & 1) === 1;
      if (marked !== (this.#heads[sizeClass] !== 0)) {
        throw new Error(`class ${sizeClass} is marked wrongly`);
      }
      let previous = 0;
      let id = this.#heads[sizeClass]!;
      for (; id !== 0; id = blocks.listNext[id]!) {
        if (blocks.state[id] !== BlockState.FREE) {
          throw new Error(`block ${id} is listed but not free`);
        }
        if (classOf(blocks.size[id]!) !== sizeClass) {
          throw new Error(`block ${id} is in a wrong class`);
        }
        if (blocks.listPrevious[id] !== previous) {
          throw new Error(`block ${id} is linked wrongly`);
        }
        previous = id;
        bytes += blocks.size[id]!;
        whole += blocks.whole[id]!;
        count++;
      }
    }
    for (let level = 0; level < LEVELS; level++) {
      const marked = (this.#levels >>> level & 1) === 1;
      if (marked !== (this.#steps[level] !== 0)) {
        throw new Error(`level ${level} is marked wrongly`);
      }
    }
    if (
      bytes !== this.bytes || whole !== this.wholeBytes || count !== this.count
    ) {
      throw new Error(
        `${count} free blocks of ${bytes} bytes, counted otherwise`,
      );
    }
  }

  /** The smallest that holds `size` bytes of the first `tries` from `id` on, 0 if none does. */
  #bestOf(id: number, size: number, tries: number): number {
    const blocks = this.#blocks;
    let best = 0;
    let bestSize = Infinity;
    for (; id !== 0 && tries > 0; id = blocks.listNext[id]!, tries--) {
      const candidate = blocks.size[id]!;
      if (candidate >= size && candidate < bestSize) {
        best = id;
        bestSize = candidate;
        if (candidate === size) break;
      }
    }
    return best;
  }

  /** The first class from `sizeClass` on that has blocks, -1 if none has. */
  #nextClass(sizeClass: number): number {
    if (sizeClass >= CLASSES) return -1;
    let level = sizeClass >> STEP_BITS;
    let steps = this.#steps[level]! & (-1 << (sizeClass & (STEPS - 1)));
    if (steps === 0) {
      // A shift by 32 would be one by 0.
      const levels = level === LEVELS - 1
        ? 0
        : this.#levels & (-1 << (level + 1));
      if (levels === 0) return -1;
      level = 31 - Math.clz32(levels & -levels);
      steps = this.#steps[level]!;
    }
    return (level << STEP_BITS) | (31 - Math.clz32(steps & -steps));
  }
}
