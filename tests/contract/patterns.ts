import { assertEquals } from "@std/assert";
import type { Block } from "../../lib/block.ts";
import type { DeviceInfo, LaunchGeometry } from "../../lib/driver.ts";
import type { Kernel, KernelArgument } from "../../lib/kernel.ts";
import type { MoonBright } from "../../lib/moonbright.ts";
import { isPlain } from "../../lib/plain_extents.ts";
import type { Stream } from "../../lib/stream.ts";
import { patternWord } from "../model/kernels.ts";

/** What {@linkcode Patterns} needs to know of a backend. */
export interface PatternDevice {
  /** Gives the image made of a file of `kernels/`. */
  kernelImage(file: "pattern" | "busy", device: DeviceInfo): Uint8Array;
  /** Whether threads of a kernel run at once. */
  parallel?: boolean;
}

/** Which part of a block, and where to do it. */
export interface PatternPart {
  /** First byte, a multiple of 8; 0 if left out. */
  from?: number;
  /** Byte behind the last; the block's size if left out. */
  to?: number;
  /** The stream to do it in; the block's own if left out. */
  stream?: Stream;
}

interface Check {
  what: string;
  block: string;
  /** Bytes behind the last whole word, as they must be. */
  tail: Uint8Array;
}

const wordBytes = 8;
/** Mismatches, lowest bad index, the bytes of the tail, nothing. */
const slotBytes = 32;
const mostSlots = 4096;
const noBadWord = 2n ** 64n - 1n;
/** No part has as many words: no two seeds share a word. */
const wordsPerSeed = 2n ** 38n;

/**
 * Fills blocks with words that depend on a seed and their place, and checks them later,
 * all by kernels and copies in stream order: nothing waits until {@linkcode settle}.
 */
export class Patterns {
  readonly #mb: MoonBright;
  readonly #parallel: boolean;
  readonly #fill: Kernel;
  readonly #verify: Kernel;
  readonly #spin: Kernel;
  /** Results, in memory of the driver's own: the figures are those of the blocks alone. */
  readonly #results: number;
  readonly #slots: number;
  #checks: Check[] = [];

  /** Loads the kernels and takes memory for the results. */
  constructor(mb: MoonBright, device: PatternDevice) {
    const { driver } = mb;
    this.#mb = mb;
    this.#parallel = device.parallel ?? false;
    const pattern = mb.loadModule(device.kernelImage("pattern", mb.device));
    this.#fill = pattern.kernel("mb_pattern_fill");
    this.#verify = pattern.kernel("mb_pattern_verify");
    this.#spin = mb.loadModule(device.kernelImage("busy", mb.device))
      .kernel("mb_spin");
    const { granularity } = mb.device;
    this.#slots = Math.min(mostSlots, granularity / slotBytes);
    if (isPlain(driver)) this.#results = driver.plainAlloc(granularity);
    else {
      this.#results = driver.reserve(granularity);
      driver.map(this.#results, driver.createExtents([granularity]));
    }
    this.#warmUp();
    this.#clear();
  }

  /** Fills a part of a block, which must begin where a word does. */
  fill(block: Block, seed: number, part: PatternPart = {}): void {
    const { words, address, from, tailBytes, stream } = this.#part(block, part);
    if (words > 0) {
      this.#fill.launch({ ...this.#geometry(words), stream }, [
        { u64: address },
        { u64: words },
        { u64: startOf(seed, from) },
      ]);
    }
    if (tailBytes === 0) return;
    const offset = from + words * wordBytes;
    block.write(tailOf(seed, offset, tailBytes), { offset, stream });
  }

  /** Checks a part of a block; `settle` tells what was found, and the step's name. */
  check(
    block: Block,
    seed: number,
    what: string,
    part: PatternPart = {},
  ): void {
    if (this.#checks.length === this.#slots) this.settle();
    const { words, address, from, tailBytes, stream } = this.#part(block, part);
    const result = this.#results + this.#checks.length * slotBytes;
    if (words > 0) {
      this.#verify.launch({ ...this.#geometry(words), stream }, [
        { u64: address },
        { u64: words },
        { u64: startOf(seed, from) },
        { u64: result },
      ]);
    }
    const tailAt = from + words * wordBytes;
    if (tailBytes > 0) {
      this.#mb.driver.copy(
        result + 16,
        block.address + tailAt,
        tailBytes,
        stream.driverId("check"),
      );
    }
    this.#checks.push({
      what,
      block: `${block.size} bytes at 0x${block.address.toString(16)}`,
      tail: tailOf(seed, tailAt, tailBytes),
    });
  }

  /** Checks a block now and once everything queued has run: what comes late may harm it. */
  checkLate(block: Block, seed: number, what: string): void {
    this.check(block, seed, what);
    this.#mb.synchronize();
    this.check(block, seed, `${what}, later`);
  }

  /** Keeps a stream busy. */
  spin(durationMs: number, stream: Stream = this.#mb.defaultStream): void {
    const args: KernelArgument[] = [{ u64: Math.round(durationMs * 1e6) }];
    this.#spin.launch({ grid: [1], block: [1], stream }, args);
  }

  /** Waits for all work and asserts that every check since the last time found its pattern. */
  settle(): void {
    this.#mb.synchronize();
    const { driver } = this.#mb;
    const bytes = new Uint8Array(this.#checks.length * slotBytes);
    if (bytes.length === 0) return;
    driver.copyOut(bytes, this.#results, 0);
    const view = new DataView(bytes.buffer);
    const damage: string[] = [];
    this.#checks.forEach(({ what, block, tail }, index) => {
      const at = index * slotBytes;
      const mismatches = view.getBigUint64(at, true);
      if (mismatches > 0n) {
        const first = view.getBigUint64(at + 8, true);
        damage.push(
          `${what}: ${mismatches} words of ${block} differ from ${first} on`,
        );
      }
      const found = bytes.subarray(at + 16, at + 16 + tail.length);
      if (found.some((byte, offset) => byte !== tail[offset])) {
        damage.push(`${what}: the tail of ${block} is ${found}, not ${tail}`);
      }
    });
    this.#clear();
    assertEquals(damage, []);
  }

  /** A kernel's first launch may wait for the device, which must not hide an overlap. */
  #warmUp(): void {
    const address = { u64: this.#results };
    const [none, seed] = [{ u64: 0 }, { u64: 0 }];
    const one: LaunchGeometry = { grid: [1], block: [1] };
    this.#fill.launch(one, [address, none, seed]);
    this.#verify.launch(one, [address, none, seed, address]);
    this.#spin.launch(one, [none]);
  }

  #part(block: Block, part: PatternPart) {
    const { from = 0, to = block.size, stream = block.stream } = part;
    block.useOn(stream);
    const words = Math.floor((to - from) / wordBytes);
    return {
      from,
      words,
      address: block.address + from,
      tailBytes: to - from - words * wordBytes,
      stream,
    };
  }

  #geometry(words: number): LaunchGeometry {
    if (!this.#parallel) return { grid: [1], block: [1] };
    const blocks = Math.ceil(words / 512);
    const most = 16 * this.#mb.device.processors;
    return { grid: [Math.min(blocks, most)], block: [256] };
  }

  #clear(): void {
    const words = new BigUint64Array(this.#slots * slotBytes / wordBytes);
    for (let at = 1; at < words.length; at += 4) words[at] = noBadWord;
    this.#mb.driver.copyIn(this.#results, new Uint8Array(words.buffer), 0);
    // Checks on any stream must find them cleared.
    this.#mb.driver.synchronizeStream(0);
    this.#checks = [];
  }
}

function startOf(seed: number, from: number): bigint {
  return BigInt(seed) * wordsPerSeed + BigInt(from / wordBytes);
}

/** Bytes behind the last whole word: the beginning of the word that would follow. */
function tailOf(seed: number, offset: number, bytes: number): Uint8Array {
  const word = BigUint64Array.of(patternWord(startOf(seed, offset), 0n));
  return new Uint8Array(word.buffer).slice(0, bytes);
}
