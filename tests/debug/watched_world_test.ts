/**
 * Watched instances under random use: they do what any instance does, and besides keep
 * what they promise of addresses. `MOONBRIGHT_SEED=n` runs that seed alone.
 */

import { assert, assertEquals } from "@std/assert";
import { explainAddress } from "../../lib/debug/explain.ts";
import { BlockFlag, BlockState } from "../../lib/blocks.ts";
import { hasFlag } from "../../lib/heap.ts";
import { roundDown } from "../../lib/sizes.ts";
import type { MoonBright } from "../../lib/moonbright.ts";
import { CoherenceWorld, type WorldOptions } from "../lib/coherence_world.ts";
import { randomSteps } from "../lib/random_walk.ts";
import { GRANULE, SINGLE_GRANULES } from "../lib/support.ts";

const STEPS = 4000;
const SOUND_EVERY = 50;

const common = {
  budget: 96 * GRANULE,
  addressSpace: 2 ** 40,
  growth: SINGLE_GRANULES,
};

const configurations: WorldOptions[] = [
  {
    name: "quarantine",
    allocator: { ...common, debug: "quarantine" },
    device: { tlb: "keeps-invalid" },
    mostStreams: 3,
  },
  {
    name: "quarantine with guards, canaries and stacks",
    allocator: {
      ...common,
      debug: "quarantine",
      guard: true,
      canaries: true,
      stacks: true,
    },
    device: { tlb: "keeps" },
    mostStreams: 3,
  },
  {
    name: "quarantine on a device that runs full, zeroed",
    allocator: {
      ...common,
      budget: Infinity,
      debug: "quarantine",
      guard: 3 * GRANULE,
      zero: true,
    },
    device: { tlb: "keeps", totalMemory: 80 * GRANULE },
    mostStreams: 2,
  },
  {
    name: "canaries among shared extents",
    // A canary may need a granule more than the world expects of a budget.
    allocator: { ...common, budget: Infinity, canaries: true },
    device: { tlb: "keeps" },
    mostStreams: 4,
  },
  {
    name: "zeroed canaries, extents of several granules",
    allocator: {
      ...common,
      budget: Infinity,
      growth: { extentSize: 4 * GRANULE, mostExtents: 4 },
      canaries: true,
      stacks: true,
      zero: true,
    },
    device: { tlb: "keeps-invalid" },
    mostStreams: 2,
  },
];

/** Fails if an instance in quarantine mode uses a granule for two blocks, ever. */
class AddressLog {
  readonly #mb: MoonBright;
  /** First byte of every granule that blocks have had, and the block it belonged to. */
  readonly #owners = new Map<number, string>();

  constructor(mb: MoonBright) {
    this.#mb = mb;
  }

  /** Looks at all live blocks. */
  note(): void {
    const { blocks } = this.#mb.allocator;
    for (let id = 1; id < blocks.end; id++) {
      if (blocks.state[id] !== BlockState.LIVE) continue;
      const owner = `${id}.${blocks.generation[id]}`;
      const first = roundDown(blocks.address[id]!, GRANULE);
      const end = blocks.address[id]! + blocks.size[id]!;
      for (let at = first; at < end; at += GRANULE) {
        const known = this.#owners.get(at);
        if (known === undefined) this.#owners.set(at, owner);
        else assertEquals(known, owner, `0x${at.toString(16)} was used before`);
      }
    }
  }

  /** Asserts that all that was freed is unmapped, once its work has passed. */
  assertUnmapped(): void {
    this.#mb.synchronize();
    const { extents, blocks } = this.#mb.allocator;
    const live = new Set<string>();
    for (let id = 1; id < blocks.end; id++) {
      // What a graph may use keeps its memory until the graph is closed.
      const held = blocks.state[id] === BlockState.PENDING &&
        hasFlag(blocks, id, BlockFlag.CAPTURED);
      if (blocks.state[id] === BlockState.LIVE || held) {
        live.add(`${id}.${blocks.generation[id]}`);
      }
    }
    for (const [address, owner] of this.#owners) {
      if (!live.has(owner)) assertEquals(extents.at(address), 0);
    }
  }
}

const only = Deno.env.get("MOONBRIGHT_SEED");
const seeds = only === undefined ? [1, 2] : [Number(only)];

for (const options of configurations) {
  for (const seed of seeds) {
    Deno.test(`watched: ${options.name}, seed ${seed}`, () => {
      const world = new CoherenceWorld(options, seed);
      const quarantined = options.allocator.debug !== undefined;
      const log = new AddressLog(world.mb);
      for (const [at, step] of randomSteps(seed, STEPS).entries()) {
        world.run(step);
        if (quarantined) log.note();
        if (at % SOUND_EVERY > 0) continue;
        world.assertSound();
        if (quarantined) log.assertUnmapped();
        world.mb.checkCanaries();
        assertExplained(world.mb);
      }
      world.finish();
      assert(world.checked > 300, `${world.checked} checks`);
    });
  }
}

/** What the snapshot says of blocks, `explain` says of their addresses. */
function assertExplained(mb: MoonBright): void {
  const { blocks, arena, quarantined } = mb.snapshot();
  const stateAt = (address: number) =>
    explainAddress(mb.allocator, address).state;
  for (const { address, size, requested, state, name } of blocks) {
    const report = explainAddress(mb.allocator, address);
    assertEquals(report.state, state);
    if (state !== "live") continue;
    assertEquals(report.offset, 0);
    assertEquals(report.block!.address, address);
    assertEquals(report.block!.size, requested);
    assertEquals(report.block!.name, name);
    assertEquals(stateAt(address + requested - 1), "live");
    if (size > requested) assertEquals(stateAt(address + size - 1), "slack");
  }
  for (const { address } of quarantined ?? []) {
    const { state, block } = explainAddress(mb.allocator, address);
    assert(state === "quarantined" || state === "pending", state);
    assertEquals(block!.address, address);
    assert(block!.freed !== undefined);
  }
  assertEquals(stateAt(arena.base - 1), "foreign");
  assertEquals(stateAt(arena.base + arena.size), "foreign");
  if (arena.frontier < arena.base + arena.size) {
    assertEquals(stateAt(arena.frontier), "unused");
  }
}
