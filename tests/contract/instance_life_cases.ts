import { assert, assertEquals } from "@std/assert";
import type { Block } from "../../lib/block.ts";
import type { MoonBright } from "../../lib/moonbright.ts";
import type { Stream } from "../../lib/stream.ts";
import { Random } from "../model/random.ts";
import {
  type Bench,
  type InstanceCase,
  randomSize,
  watchMappings,
} from "./instance_harness.ts";
import type { Patterns } from "./patterns.ts";

interface Life {
  block: Block;
  seed: number;
  stream: Stream;
  /** Most bytes it can grow to; 0 of a block without room for growth. */
  maxSize: number;
}

/** A random course of blocks through one instance, each with a pattern of its own. */
class Lives {
  readonly #mb: MoonBright;
  readonly #patterns: Patterns;
  readonly #random: Random;
  readonly #streams: Stream[];
  readonly #largest: number;
  readonly #mostLive: number;
  readonly #plain: boolean;
  #lives: Life[] = [];
  #live = 0;
  #seeds = 0;
  #step = 0;

  constructor(bench: Bench, mb: MoonBright, seed: number) {
    this.#mb = mb;
    this.#patterns = bench.patterns(mb);
    this.#random = new Random(seed);
    this.#streams = [mb.defaultStream, mb.createStream(), mb.createStream()];
    this.#largest = bench.scale.largest;
    this.#mostLive = bench.scale.live;
    this.#plain = bench.backend.plain ?? false;
  }

  /** Bytes asked for in live blocks, by this record. */
  get live(): number {
    return this.#live;
  }

  step(): void {
    this.#step++;
    const turn = this.#random.below(1000);
    if (turn < 430) this.#alloc();
    else if (turn < 750) this.#free();
    else if (turn < 900) this.#check(this.#any());
    else if (turn < 960) this.#resize();
    else if (turn < 970) this.#mb.flush();
    else if (turn < 975) this.#mb.flush({ wait: true });
    else if (turn < 985) this.#mb.trim({ wait: false });
    else if (turn < 990) this.#mb.trim();
    else this.#anyStream().synchronize();
    if (this.#step % 100 === 0) this.#mb.allocator.assertInvariants();
  }

  /** Checks and frees all that is left. */
  end(): void {
    while (this.#lives.length > 0) this.#free();
    this.#patterns.settle();
    assertEquals(this.#live, 0);
  }

  #anyStream(): Stream {
    return this.#streams[this.#random.below(this.#streams.length)]!;
  }

  #any(): Life | undefined {
    return this.#lives[this.#random.below(this.#lives.length)];
  }

  #alloc(): void {
    const size = randomSize(this.#random, this.#largest);
    while (this.#live + size > this.#mostLive) this.#free();
    const stream = this.#anyStream();
    const maxSize = this.#random.below(8) > 0 || this.#plain ? 0 : 2 * size;
    const block = this.#mb.alloc(size, {
      stream,
      ...(maxSize > 0 ? { maxSize } : {}),
    });
    const end = block.address + block.capacity;
    for (const { block: other } of this.#lives) {
      assert(
        end <= other.address || other.address + other.capacity <= block.address,
        `step ${this.#step}: two live blocks overlap`,
      );
    }
    const life = { block, seed: this.#seeds++, stream, maxSize };
    this.#patterns.fill(block, life.seed);
    this.#lives.push(life);
    this.#live += size;
  }

  #check(life: Life | undefined, stream = life?.stream): void {
    if (!life) return;
    const what = `step ${this.#step}, stream ${stream!.number}`;
    this.#patterns.check(life.block, life.seed, what, { stream });
  }

  /** Checks a block on some stream and frees it right behind, in one of three ways. */
  #free(): void {
    const life = this.#any();
    if (!life) return;
    this.#lives.splice(this.#lives.indexOf(life), 1);
    this.#live -= life.block.size;
    const other = this.#anyStream();
    if (this.#random.below(3) > 0 || other === life.stream) {
      this.#check(life);
      life.block.free();
    } else if (this.#random.below(2) === 0) {
      this.#check(life, other);
      life.block.free();
    } else {
      // The other stream comes last: it waits for the block's own.
      using point = life.stream.record();
      other.wait(point);
      this.#check(life, other);
      life.block.free(other);
    }
  }

  #resize(): void {
    const life = this.#any();
    if (!life || life.maxSize === 0) return;
    const { block, seed } = life;
    const before = block.size;
    const size = 1 + this.#random.below(life.maxSize);
    if (this.#live + size - before > this.#mostLive) return;
    this.#check(life);
    block.resize(size);
    this.#live += size - before;
    if (size > before) {
      const from = Math.floor(before / 8) * 8;
      this.#patterns.fill(block, seed, { from, to: size });
    }
    this.#check(life);
  }
}

function live(bench: Bench, mb: MoonBright, seed: number): MoonBright {
  const lives = new Lives(bench, mb, seed);
  for (let step = 0; step < bench.scale.steps; step++) {
    lives.step();
    if (step % 500 === 0) {
      assertEquals(mb.stats().requested, lives.live);
    }
  }
  lives.end();
  return mb;
}

/** Random sizes, lifetimes and streams; every block keeps its contents until it is freed. */
export const lifeCases: InstanceCase[] = [
  {
    name: "contents survive every way of serving, over single granules",
    skipOn: ({ plain }) => plain ?? false,
    check(bench) {
      const mb = live(bench, bench.openGranular(), 1);
      const { ways, flushes, mapped } = mb.stats();
      for (const [way, { count }] of Object.entries(ways)) {
        assert(count > 2, `${way} served ${count} requests`);
      }
      assert(ways.stitch.count > 50, `${ways.stitch.count} stitched`);
      assert(flushes > 0);
      assertEquals(mb.trim(), mapped);
      assertEquals(mb.stats().mapped, 0);
    },
  },
  {
    name: "contents survive with the planner's own choice of ways",
    check(bench) {
      const mb = live(bench, bench.open(), 2);
      const { ways, mapped } = mb.stats();
      assert(ways.reuse.count > 10 && ways.grow.count > 0);
      const others = ways.extend.count + ways.stitch.count;
      assert(bench.backend.plain ? others === 0 : others > 0, `${others}`);
      assertEquals(mb.trim(), mapped);
    },
  },
  {
    name: "contents survive where addresses are used again as soon as possible",
    skipOn: ({ plain }) => plain ?? false,
    check(bench) {
      // Flushed at every chance.
      const mb = bench.openGranular({ maxRetired: 0 });
      const mappedAgain = watchMappings(mb);
      const { flushes } = live(bench, mb, 3).stats();
      assert(flushes > 20, `${flushes} flushes`);
      assert(mappedAgain() > 100, `${mappedAgain()} granules mapped again`);
    },
  },
];
