/** Several instances at once, in workers and processes, and how processes end. */

import { assert, assertEquals, assertThrows } from "@std/assert";
import { fromFileUrl } from "@std/path";
import { openDriver } from "../ffi/devices.ts";
import { MoonBright } from "../ffi/moonbright.ts";
import { InvalidBlockError } from "../lib/errors.ts";
import type { Loan } from "./concurrency/lending_worker.ts";
import type { Course, Outcome } from "./concurrency/lives_worker.ts";
import { assertFailsWith } from "./contract/instance_harness.ts";
import { buildFakeCuda, buildFakeHip } from "./fake/build.ts";
import { FakeGpu } from "./fake/control.ts";

const vendorLibrary = await buildFakeCuda();
// The shim stays open, which a test would be blamed for.
openDriver({ device: "host" }).close();

const devices: Omit<Course, "seed" | "steps">[] = [
  { device: "host" },
  { device: "cuda:0", vendorLibrary },
  { device: "hip:0", vendorLibrary: await buildFakeHip() },
];

/** Nothing may be left on a device once its instances are closed. */
function assertNothingLeft(library = vendorLibrary): void {
  using fake = new FakeGpu(library);
  assertEquals(fake.leftovers(), {});
}

function startWorker(script: string): Worker {
  const url = new URL(`concurrency/${script}`, import.meta.url);
  return new Worker(url, { type: "module" });
}

/** The next message of a worker. */
function messageOf<Message>(worker: Worker): Promise<Message> {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<Message>) => resolve(data);
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error(event.message));
    };
  });
}

/** Has a worker of its own take a course. */
async function takeCourse(course: Course): Promise<Outcome> {
  const worker = startWorker("lives_worker.ts");
  try {
    const outcome = messageOf<Outcome>(worker);
    worker.postMessage(course);
    return await outcome;
  } finally {
    worker.terminate();
  }
}

for (const device of devices) {
  Deno.test(`workers: instances on ${device.device} in four of them don't meet`, async () => {
    const outcomes = await Promise.all(
      [1, 2, 3, 4].map((seed) => takeCourse({ ...device, seed, steps: 150 })),
    );
    assertEquals(
      outcomes.map(({ failure }) => failure),
      Array(4).fill(undefined),
    );
    assert(outcomes.every(({ checked }) => checked === 150));
    assertNothingLeft(device.vendorLibrary);
  });

  Deno.test(`workers: instances on ${device.device} come and go while one works`, async () => {
    const course = takeCourse({ ...device, seed: 5, steps: 400 });
    let done = false;
    course.finally(() => done = true);
    let rounds = 0;
    while (!done || rounds < 3) {
      using mb = MoonBright.open(device);
      const block = mb.alloc(100_000);
      block.fill(rounds % 256);
      assertEquals(block.read(1)[0], rounds % 256);
      rounds++;
      // Closed with a block live, and work that nobody has waited for.
      block.fill(1);
      mb.close();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assertEquals(await course, { checked: 400 });
    assertNothingLeft(device.vendorLibrary);
  });
}

Deno.test("workers: one that is terminated at work harms no other", async () => {
  for (let round = 0; round < 3; round++) {
    const worker = startWorker("lives_worker.ts");
    worker.postMessage({ device: "host", seed: 1, steps: 1e6 });
    using mb = MoonBright.open({ device: "host" });
    using block = mb.alloc(1_000_000);
    for (let step = 0; step < 20; step++) {
      block.fill(step);
      assert(block.read().every((byte) => byte === step));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    worker.terminate();
    block.fill(99);
    assert(block.read().every((byte) => byte === 99));
  }
});

Deno.test("workers: an address can be passed on and read and written there", async () => {
  const worker = startWorker("lending_worker.ts");
  try {
    const { address, bytes, value } = await messageOf<Loan>(worker);
    const pointer = Deno.UnsafePointer.create(BigInt(address));
    assert(pointer);
    const copy = new Uint8Array(bytes);
    Deno.UnsafePointerView.copyInto(pointer, copy);
    assert(copy.every((byte) => byte === value));
    // It is the other instance's all the same.
    using mb = MoonBright.open({ device: "host" });
    using mine = mb.alloc(1000);
    assertThrows(() => mb.free(address), InvalidBlockError, "not MoonBright's");
    for (
      const use of [
        () => mb.driver.copyOut(new Uint8Array(8), address, 0),
        () => mb.driver.fill(address, 1, 1, 8, 0),
        () => mb.driver.copy(mine.address, address, 8, 0),
      ]
    ) assertFailsWith("not-mapped", use);
    const view = new Uint8Array(
      Deno.UnsafePointerView.getArrayBuffer(pointer, bytes),
    );
    view.fill(0x77);
    const seen = messageOf<string>(worker);
    worker.postMessage(0x77);
    assertEquals(await seen, "seen");
  } finally {
    worker.terminate();
  }
});

interface Ended {
  code: number;
  signal: string | null;
  stdout: string;
  stderr: string;
}

async function runScript(
  script: string,
  args: string[],
  flags: string[] = [],
): Promise<Ended> {
  const path = fromFileUrl(new URL(`concurrency/${script}`, import.meta.url));
  const { code, signal, stdout, stderr } = await new Deno.Command(
    Deno.execPath(),
    {
      args: ["run", "-A", "--no-check", ...flags, path, ...args],
      env: { NO_COLOR: "1" },
      stdin: "null",
    },
  ).output();
  const decoder = new TextDecoder();
  return {
    code,
    signal,
    stdout: decoder.decode(stdout),
    stderr: decoder.decode(stderr),
  };
}

const quiet = { code: 0, signal: null, stdout: "", stderr: "" };

for (const { device, vendorLibrary } of devices) {
  Deno.test(`case 16: a process ends quietly with live memory and running work on ${device}`, async () => {
    const ways = ["end", "exit", "close"];
    if (vendorLibrary) ways.push("lost", "lost, closed");
    for (const way of ways) {
      const ended = await runScript("exit_work.ts", [
        device,
        vendorLibrary ?? "",
        way,
      ]);
      assertEquals(ended, quiet, way);
    }
    const thrown = await runScript("exit_work.ts", [
      device,
      vendorLibrary ?? "",
      "throw",
    ]);
    assertEquals([thrown.code, thrown.signal, thrown.stdout], [1, null, ""]);
    assert(/^error: Uncaught .*Error: mine/.test(thrown.stderr));
    const interrupted = await runScript("exit_work.ts", [
      device,
      vendorLibrary ?? "",
      "interrupted",
    ]);
    assertEquals(interrupted, { ...quiet, code: 130, signal: "SIGINT" });
  });
}

Deno.test("a lost owner is reported once, if that was asked for, and only if its block is live", async () => {
  const ended = await runScript("leak_work.ts", [], ["--v8-flags=--expose-gc"]);
  assertEquals([ended.code, ended.stdout], [0, "3 true\n"]);
  const lines = ended.stderr.trim().split("\n").sort();
  assertEquals(lines, [
    "MoonBright: a block was never freed: 1000 bytes",
    "MoonBright: a block was never freed: named",
  ]);
});

for (
  const args of [
    ["alloc", "512 x 5000000", "--verify=host"],
    ["alloc", "64KiB x 200000", "--order=random"],
    ["bench"],
    ["bench", "--json"],
  ]
) {
  Deno.test(`interrupted: "${args.join(" ")}" ends at once and leaves nothing`, async () => {
    const dir = await Deno.makeTempDir({ prefix: "moonbright-interrupt-" });
    try {
      const shared = namesIn("/dev/shm");
      const cli = fromFileUrl(new URL("../cli.ts", import.meta.url));
      const child = new Deno.Command(Deno.execPath(), {
        args: ["run", "-A", "--no-check", cli, ...args, "--device=host"],
        env: { NO_COLOR: "1", TMPDIR: dir },
        stdin: "null",
        stdout: "piped",
        stderr: "piped",
      }).spawn();
      const timer = setInterval(() => {
        try {
          child.kill("SIGINT");
        } catch {
          // It has ended.
        }
      }, 700);
      const { code, signal, stdout, stderr } = await child.output();
      clearInterval(timer);
      assertEquals(code, 130);
      const decoder = new TextDecoder();
      // On a busy machine the signal may come before anything listens for it.
      if (signal === null) {
        assertEquals(decoder.decode(stderr), "moonbright: interrupted\n");
        const text = decoder.decode(stdout);
        if (args.includes("--json")) {
          assertEquals(JSON.parse(text).error.exitCode, 130);
        } else assertEquals(text, "");
      }
      assertEquals(namesIn(dir), []);
      assertEquals(namesIn("/dev/shm"), shared);
    } finally {
      await Deno.remove(dir, { recursive: true });
    }
  });
}

/** Names in a folder that have to do with MoonBright, sorted; none if there is no folder. */
function namesIn(dir: string): string[] {
  try {
    return [...Deno.readDirSync(dir)].map(({ name }) => name)
      .filter((name) => dir !== "/dev/shm" || name.includes("moonbright"))
      .sort();
  } catch {
    return [];
  }
}

Deno.test("case 17: a program started as a child has devices of its own", async () => {
  for (const device of devices) {
    using mb = MoonBright.open(device);
    using block = mb.alloc(100_000);
    block.fill(3);
    const ended = await runScript("exit_work.ts", [
      device.device,
      device.vendorLibrary ?? "",
      "close",
    ]);
    assertEquals(ended, quiet);
    assert(block.read().every((byte) => byte === 3));
  }
});
