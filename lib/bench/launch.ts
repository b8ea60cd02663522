import { type BenchContext, MIB } from "./context.ts";
import { type Series, series } from "./samples.ts";

/** What goes on beside the launches. */
type Background = (() => void) | undefined;

/**
 * Launch latency on another thread while this one does nothing, computes, maps and
 * unmaps without pause, and allocates and frees plainly. The four take turns in short
 * rounds, so that a drift of the machine hits all alike.
 */
export async function benchLaunch(c: BenchContext): Promise<Series[]> {
  const { mb, driver } = c;
  const size = 16 * MIB;
  const backgrounds: Record<string, Background> = {
    "idle": undefined,
    // What a busy neighbouring thread alone does to launches.
    "while computing": () => {
      const until = performance.now() + 5;
      while (performance.now() < until);
    },
    "while MoonBright maps": () => {
      // A heap that grows, then gives back: one event for 32 mappings.
      const blocks = Array.from({ length: 32 }, () => mb.alloc(size));
      for (const block of blocks) block.free();
      mb.trim({ wait: false });
    },
    "while allocating plainly": () => {
      for (let i = 0; i < 32; i++) driver.plainFree(driver.plainAlloc(size));
    },
  };
  const rounds = c.quick ? 3 : 30;
  const launches = c.quick ? 1_000 : 10_000;
  const samples = new Map<string, number[]>();
  for (const subject of Object.keys(backgrounds)) samples.set(subject, []);
  using stream = mb.createStream();
  const streamId = stream.driverId("launch");
  for (let round = 0; round < rounds + 1; round++) {
    await c.step(`launch latency, round ${round} of ${rounds}`);
    for (const [subject, work] of Object.entries(backgrounds)) {
      const timed = driver.timeLaunch(
        c.empty.driverId,
        streamId,
        new Uint8Array(8),
        false,
        launches,
      );
      const ns = await beside(timed, work);
      // The first round warms up.
      if (round > 0) samples.get(subject)!.push(...ns);
    }
  }
  mb.trim();
  return [...samples].map(([subject, ns]) =>
    series("launch latency", subject, 0, ns)
  );
}

/** Repeats the work until the promise settles; gives its result. */
async function beside<T>(promise: Promise<T>, work: Background): Promise<T> {
  let settled = false;
  const done = () => settled = true;
  promise.then(done, done);
  while (work && !settled) {
    work();
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  return await promise;
}
