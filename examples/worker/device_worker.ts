/**
 * The worker: owns an instance, does jobs on its device, returns the results.
 *
 * @module
 */

import { MoonBright } from "@moonbright/moonbright";
import { vectorAddImage } from "../vector_add/image.ts";
import type { Answer, Floats, Job } from "./protocol.ts";

/** What a worker has as its global scope, which the types of programs lack. */
interface WorkerScope {
  readonly name: string;
  onmessage: (event: MessageEvent<Job | "close">) => void;
  postMessage(answer: Answer, transfer: ArrayBuffer[]): void;
  close(): void;
}

const scope = self as unknown as WorkerScope;

// The name carries the device: it is there before any message.
const mb = MoonBright.open({ device: scope.name, budget: 256 * 1024 ** 2 });
const kernel = mb.loadModule(vectorAddImage(mb.device)).kernel("vector_add");

scope.onmessage = ({ data }) => {
  if (data === "close") {
    mb.close();
    scope.close();
    return;
  }
  let answer: Answer;
  try {
    answer = { id: data.id, sum: add(data) };
  } catch (error) {
    answer = { id: data.id, error: String(error) };
  }
  // Moved, not copied.
  scope.postMessage(answer, "sum" in answer ? [answer.sum.buffer] : []);
};

function add({ a, b }: Job): Floats {
  using first = mb.alloc(a.byteLength);
  using second = mb.alloc(b.byteLength);
  using sum = mb.alloc(a.byteLength);
  first.write(a);
  second.write(b);
  kernel.launch({ grid: [64], block: [256] }, [
    ...[first, second, sum, { u64: a.length }],
  ]);
  return new Float32Array(sum.read().buffer as ArrayBuffer);
}
