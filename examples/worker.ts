/**
 * A device in a worker: the main thread never waits for it. The worker owns the
 * instance; only data go back and forth.
 *
 *     deno run -A examples/worker.ts [DEVICE]
 *
 * @module
 */

import type { Answer, Floats, Job } from "./worker/protocol.ts";

/** Adds vectors in a worker. */
export class DeviceWorker implements Disposable {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, PromiseWithResolvers<Floats>>();
  #jobs = 0;
  #failure: Error | undefined;

  /** Starts a worker that opens a device. */
  constructor(device: string) {
    this.#worker = new Worker(
      new URL("worker/device_worker.ts", import.meta.url),
      { type: "module", name: device },
    );
    this.#worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      const waiting = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if ("sum" in data) waiting?.resolve(data.sum);
      else waiting?.reject(new Error(data.error));
    };
    // The worker has ended, such as for want of the device: no job will be answered.
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#failure = new Error(event.message);
      for (const { reject } of this.#waiting.values()) reject(this.#failure);
      this.#waiting.clear();
    };
  }

  /** The sums of two vectors of one length, which are moved to the worker. */
  add(a: Floats, b: Floats): Promise<Floats> {
    if (this.#failure) return Promise.reject(this.#failure);
    const job: Job = { id: this.#jobs++, a, b };
    const waiting = Promise.withResolvers<Floats>();
    this.#waiting.set(job.id, waiting);
    this.#worker.postMessage(job, [a.buffer, b.buffer]);
    return waiting.promise;
  }

  /** Ends the worker, which gives its memory back. */
  [Symbol.dispose](): void {
    this.#worker.postMessage("close");
  }
}

if (import.meta.main) {
  using worker = new DeviceWorker(Deno.args[0] ?? "auto");
  let turns = 0;
  const clock = setInterval(() => turns++, 1);
  const jobs = Array.from({ length: 20 }, (_, i) =>
    worker.add(
      new Float32Array(1_000_000).fill(i),
      new Float32Array(1_000_000).fill(0.5),
    ));
  const sums = await Promise.all(jobs);
  clearInterval(clock);
  console.log(sums.map((sum) => sum[0]).join(" "));
  console.log(`the main thread went round ${turns} times meanwhile`);
}
