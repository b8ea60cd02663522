/**
 * Run as a worker by the tests: a random course of blocks through an instance of its own.
 *
 * @module
 */

import { MoonBright } from "../../ffi/moonbright.ts";
import type { Block } from "../../lib/block.ts";
import { Random } from "../model/random.ts";

/** What to do. */
export interface Course {
  device: string;
  vendorLibrary?: string;
  seed: number;
  steps: number;
}

/** How it went. */
export interface Outcome {
  /** Blocks whose contents were compared. */
  checked: number;
  /** What went wrong. */
  failure?: string;
}

interface Life {
  block: Block;
  value: number;
}

function live({ seed, steps, ...device }: Course): number {
  using mb = MoonBright.open(device);
  const { granularity } = mb.device;
  mb.budget = 24 * granularity;
  const random = new Random(seed);
  const streams = [mb.defaultStream, mb.createStream(), mb.createStream()];
  const lives: Life[] = [];
  let checked = 0;
  const end = (at: number) => {
    const [{ block, value }] = lives.splice(at, 1) as [Life];
    const bytes = block.read();
    if (bytes.some((byte) => byte !== value)) {
      throw new Error(`a block of ${value} holds something else`);
    }
    checked++;
    block.free();
  };
  for (let step = 0; step < steps; step++) {
    if (lives.length > 20) end(random.below(lives.length));
    const block = mb.alloc(1 + random.below(granularity / 2), {
      stream: streams[random.below(3)]!,
    });
    const value = random.below(256);
    block.fill(value);
    lives.push({ block, value });
    if (step % 40 === 0) mb.trim({ wait: step % 80 === 0 });
  }
  while (lives.length > 0) end(0);
  mb.allocator.assertInvariants();
  return checked;
}

const scope = self as unknown as {
  onmessage: (event: MessageEvent<Course>) => void;
  postMessage(outcome: Outcome): void;
};
scope.onmessage = ({ data }) => {
  try {
    scope.postMessage({ checked: live(data) });
  } catch (error) {
    scope.postMessage({ checked: 0, failure: String(error) });
  }
};
