/**
 * Several streams: producers fill buffers, a consumer checks them, and the memory goes
 * round. Nothing waits on the host before the end.
 *
 *     deno run -A examples/streams.ts [DEVICE]
 *
 * @module
 */

import { kernelImage, MoonBright } from "@moonbright/moonbright";

const WORDS = 128 * 1024;
/** Much less than all buffers together: memory has to go round. */
const BUDGET = 16 * 1024 ** 2;
const GEOMETRY = { grid: [64], block: [256] } as const;

/** What a run came to. */
export interface StreamsResult {
  /** Buffers produced and checked. */
  buffers: number;
  /** 64-bit words that were not what the producer wrote. */
  wrong: number;
  /** Bytes that the device gave for all of it. */
  mapped: number;
}

/** Produces `rounds` buffers on each of some streams and checks them on another. */
export function runStreams(
  device: string,
  producers = 4,
  rounds = 50,
): StreamsResult {
  using mb = MoonBright.open({ device, budget: BUDGET });
  using module = mb.loadModule(kernelImage("pattern", mb.device));
  const fill = module.kernel("mb_pattern_fill");
  const verify = module.kernel("mb_pattern_verify");
  const streams = Array.from({ length: producers }, () => mb.createStream());
  using consumer = mb.createStream();

  // The kernel adds to the first word and lowers the second.
  using result = mb.alloc(16, { stream: consumer });
  result.write(new BigUint64Array([0n, 2n ** 64n - 1n]));

  for (let round = 0; round < rounds; round++) {
    for (const [number, stream] of streams.entries()) {
      const seed = round * producers + number;
      const buffer = mb.alloc(8 * WORDS, { stream });
      fill.launch({ ...GEOMETRY, stream }, [
        ...[buffer, { u64: WORDS }, { u64: seed }],
      ]);
      // The launch notes that the consumer uses the buffer, and has it wait for the fill.
      verify.launch({ ...GEOMETRY, stream: consumer }, [
        ...[buffer, { u64: WORDS }, { u64: seed }, result],
      ]);
      // Freed while both may still run: handed out again only when both have passed.
      buffer.free();
    }
  }
  const [wrong] = new BigUint64Array(result.read().buffer);
  const { mapped } = mb.stats();
  for (const stream of streams) stream.close();
  return { buffers: producers * rounds, wrong: Number(wrong), mapped };
}

if (import.meta.main) {
  const { buffers, wrong, mapped } = runStreams(Deno.args[0] ?? "auto");
  const size = buffers * 8 * WORDS / 1024 ** 2;
  console.log(`${buffers} buffers of ${size} MiB in all, ${wrong} wrong words`);
  console.log(`${mapped / 1024 ** 2} MiB of device memory`);
  if (wrong > 0) Deno.exitCode = 1;
}
