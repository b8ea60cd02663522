/**
 * Adds two vectors with a kernel of one's own.
 *
 *     deno run -A examples/vector_add.ts [DEVICE]
 *
 * @module
 */

import { MoonBright } from "@moonbright/moonbright";
import { vectorAddImage } from "./vector_add/image.ts";

const COUNT = 1_000_000;

/** Adds on a device; returns the sums, `3 * i` at place `i`. */
export function addVectors(device: string, count = COUNT): Float32Array {
  using mb = MoonBright.open({ device });
  using module = mb.loadModule(vectorAddImage(mb.device));
  const bytes = count * Float32Array.BYTES_PER_ELEMENT;
  using a = mb.alloc(bytes, { name: "a" });
  using b = mb.alloc(bytes, { name: "b" });
  using sum = mb.alloc(bytes, { name: "sum" });

  a.write(Float32Array.from({ length: count }, (_, i) => i));
  b.write(Float32Array.from({ length: count }, (_, i) => 2 * i));
  module.kernel("vector_add").launch(
    { grid: [128], block: [256] },
    [a, b, sum, { u64: count }], // the fields of VectorAddArgs
  );
  // Reading is in stream order, too: it comes after the kernel.
  return new Float32Array(sum.read().buffer);
}

if (import.meta.main) {
  const sums = addVectors(Deno.args[0] ?? "auto");
  console.log(`${sums.length} sums, the last is ${sums.at(-1)}`);
}
