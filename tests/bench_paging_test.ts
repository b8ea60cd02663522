import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { kernelImage } from "../ffi/kernels.ts";
import { MoonBright } from "../ffi/moonbright.ts";
import { DeviceTimer } from "../lib/bench/device_timer.ts";
import type { BenchContext } from "../lib/bench/context.ts";
import { encodeOnHost } from "../lib/bench/host_encoder.ts";
import { benchMaterialize } from "../lib/bench/materialize.ts";
import { benchPages } from "../lib/bench/pages.ts";
import type { Series } from "../lib/bench/samples.ts";
import {
  scatteredFrames,
  singleFrameRuns,
} from "../lib/bench/scattered_frames.ts";
import { asTimedDriver } from "../lib/bench/timed_driver.ts";
import { benchTranslate } from "../lib/bench/translate.ts";
import { encode, FORMATS } from "../lib/paging/formats.ts";

const MIB = 2 ** 20;

/** A context on the host backend; `available` as a device would tell it. */
function contextOn(mb: MoonBright, available: number): BenchContext {
  const busy = mb.loadModule(kernelImage("busy", mb.device));
  return {
    mb,
    driver: asTimedDriver(mb.driver),
    available,
    spin: busy.kernel("mb_spin"),
    empty: busy.kernel("mb_empty"),
    images: (name) => kernelImage(name, mb.device),
    quick: true,
    step: () => Promise.resolve(),
  };
}

async function measure(
  benchmark: (c: BenchContext) => Promise<Series[]>,
  available: number,
): Promise<Series[]> {
  using mb = MoonBright.open({ device: "host" });
  const all = await benchmark(contextOn(mb, available));
  const { liveBlocks, mapped } = mb.stats();
  assertEquals([liveBlocks, mapped], [0, 0]);
  for (const { subject, samples } of all) {
    assert(samples.length >= 3, subject);
    assert(samples.every((ns) => Number.isFinite(ns) && ns > 0), subject);
  }
  return all;
}

/** The subjects of each group and size. */
function subjects(all: readonly Series[]): Record<string, string[]> {
  const found: Record<string, string[]> = {};
  for (const { group, subject, size } of all) {
    (found[`${group}, ${size}`] ??= []).push(subject);
  }
  return found;
}

// Opened before any test: the library stays open for the life of the process.
MoonBright.open({ device: "host" }).close();

Deno.test("entries are written in every way, beside the host's loop", async () => {
  const ways = [
    "host loop and copy",
    "empty kernel",
    "one run",
    "64 runs",
    "scattered frames, pinned list",
  ];
  const group = "page-table entries";
  // 2 MiB of entries are more than half of what there is.
  assertEquals(subjects(await measure(benchMaterialize, 3 * MIB)), {
    [`${group}, 8`]: ways.filter((way) => way !== "64 runs"),
    [`${group}, 8192`]: ways,
    [`${group}, 262144`]: ways,
    [`${group} of one run, by layout, 262144`]: Object.keys(FORMATS),
  });
});

Deno.test("pages are measured beside mapping as much", async () => {
  assertEquals(subjects(await measure(benchPages, 300 * MIB)), {
    [`paged space, ${64 * MIB}`]: [
      "raw map and set access",
      "alloc, one run of frames",
      "alloc, 64 runs",
      "fork, 64 runs",
    ],
    "paged space, 65536": ["grow by a page"],
  });
});

Deno.test("reading through tables is measured beside reading without", async () => {
  const ways = [
    "without a table",
    "a translation a page",
    "a translation an access",
  ];
  const group = "reading scattered pages of";
  assertEquals(subjects(await measure(benchTranslate, 16 * MIB)), {
    [`${group} 4 KiB, ${8 * MIB}`]: ways,
    [`${group} 64 KiB, ${8 * MIB}`]: ways,
    [`${group} 2 MiB, ${8 * MIB}`]: ways,
  });
});

Deno.test("a kernel that writes other entries is no result", async () => {
  using mb = MoonBright.open({ device: "host" });
  const c = contextOn(mb, MIB);
  const driver = new Proxy(c.driver, {
    get(target, key) {
      const value = Reflect.get(target, key, target);
      if (key !== "writePinned") {
        return typeof value === "function" ? value.bind(target) : value;
      }
      return (address: number, list: Uint8Array) => {
        // The upper half of a run is its frame.
        const other = list.map((byte, i) => i === 4 ? byte ^ 1 : byte);
        target.writePinned(address, other);
      };
    },
  });
  await assertRejects(
    () => benchMaterialize({ ...c, driver }),
    Error,
    "wrote other entries",
  );
});

/** A host and a device with a queue, and a clock of their own. Times in nanoseconds. */
function queueOf(hostNsPerCall: number) {
  let now = 1e6;
  let idleFrom = 0;
  const events: number[] = [];
  const launch = (ns: number) => {
    now += hostNsPerCall;
    idleFrom = Math.max(now, idleFrom) + ns;
  };
  const driver: Partial<BenchContext["driver"]> = {
    createEvent: () => events.push(0) - 1,
    recordEvent(event) {
      now += hostNsPerCall;
      idleFrom = Math.max(now, idleFrom);
      events[event] = idleFrom;
    },
    synchronizeEvent(event) {
      now = Math.max(now, events[event]!);
    },
    elapsedMs: (from, to) => (events[to]! - events[from]!) / 1e6,
    destroyEvent() {},
    launch: (_kernel, _shape, args) =>
      launch(Number(new BigUint64Array(args.slice().buffer)[0])),
  };
  const c = { driver, spin: { driverId: 1 } } as unknown as BenchContext;
  return { launch, c };
}

Deno.test("the timer tells the device's time, not the host's", () => {
  for (const hostNs of [1, 100, 4_000, 10_000]) {
    for (const deviceNs of [50, 2_000, 9_999, 500_000]) {
      for (const count of [1, 3, 100, 1000]) {
        const { launch, c } = queueOf(hostNs);
        using timer = new DeviceTimer(c);
        for (let round = 0; round < 3; round++) {
          const ns = timer.time(count, () => launch(deviceNs));
          assertAlmostEquals(ns, deviceNs, 1e-3, `${hostNs} ${count}`);
        }
      }
    }
  }
});

Deno.test("the timer measures a kernel of known length on the host backend", () => {
  using mb = MoonBright.open({ device: "host" });
  const c = contextOn(mb, MIB);
  using timer = new DeviceTimer(c);
  const spinNs = new Uint8Array(BigUint64Array.of(2_000_000n).buffer);
  const ns = timer.time(3, () =>
    c.driver.launch(
      c.spin.driverId,
      { grid: [1], block: [1] },
      spinNs,
      0,
    ));
  assert(ns > 1.9e6, `${ns}`);
});

for (const bits of [0, 1, 2, 5, 10, 15, 20]) {
  Deno.test(`${2 ** bits} scattered frames are each there once`, () => {
    const frames = scatteredFrames(2 ** bits);
    assertEquals(
      frames.toSorted(),
      Uint32Array.from({ length: 2 ** bits }, (_, i) => i),
    );
    if (bits < 10) return;
    const neighbours = frames.filter((frame, i) =>
      frame === frames[i - 1]! + 1
    );
    assert(neighbours.length < frames.length / 20, `${neighbours.length}`);
  });
}

Deno.test("frames are scattered only in powers of two", () => {
  for (const count of [0, -4, 3, 1.5, 2 ** 31, NaN]) {
    assertThrows(() => scatteredFrames(count), RangeError, `${count}`);
  }
});

Deno.test("a list has a run for each frame", () => {
  const list = singleFrameRuns(Uint32Array.of(7, 3, 9));
  assertEquals([list.runCount, list.count], [3, 3]);
  assertEquals(
    new Uint32Array(list.bytes.buffer),
    Uint32Array.of(0, 7, 1, 3, 2, 9),
  );
});

Deno.test("the host's loop encodes every layout", () => {
  const frames = Uint32Array.of(0, 5, 2, 65_535);
  for (const format of Object.values(FORMATS)) {
    for (const pageSize of format.flags.keys()) {
      const kind = { pageSize, readOnly: true, version: 0xABC };
      // The highest that the narrowest layout has room for.
      const base = 2 ** 37 - 65_536 * pageSize;
      const entries = new BigUint64Array(frames.length);
      encodeOnHost(
        { entries: 0, frames: base, format, ...kind },
        frames,
        entries,
      );
      assertEquals(
        [...entries],
        Array.from(
          frames,
          (frame) =>
            encode(format, { ...kind, address: base + frame * pageSize }),
        ),
      );
    }
  }
});
