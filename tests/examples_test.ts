import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertThrows,
} from "@std/assert";
import { fromFileUrl } from "@std/path";
import { LogBuffer } from "../examples/log_buffer.ts";
import { allocBatch, allocDropping, Cache } from "../examples/out_of_memory.ts";
import { runStreams } from "../examples/streams.ts";
import { addVectors } from "../examples/vector_add.ts";
import { PTX_COMMAND } from "../examples/vector_add/image.ts";
import { DeviceWorker } from "../examples/worker.ts";
import { MoonBright, MoonBrightError, OutOfMemoryError } from "../mod.ts";

const ROOT = fromFileUrl(new URL("../", import.meta.url));
const MIB = 1024 ** 2;

Deno.test("vector_add adds, whatever the count", () => {
  for (const count of [1, 31, 1000, 100_003]) {
    const sums = addVectors("host", count);
    assertEquals(sums.length, count);
    assert(sums.every((sum, i) => sum === 3 * i));
  }
});

const [clang, ...clangArgs] = PTX_COMMAND;

Deno.test({
  name: "the PTX of vector_add is what its source compiles to",
  ignore: !isThere(clang!),
  fn: async () => {
    const file = await Deno.makeTempFile();
    try {
      const { success, stderr } = await new Deno.Command(clang!, {
        args: [...clangArgs, file],
      }).output();
      assert(success, new TextDecoder().decode(stderr));
      assertEquals(
        await Deno.readTextFile(`${ROOT}examples/vector_add/vector_add.ptx`),
        await Deno.readTextFile(file),
      );
    } finally {
      await Deno.remove(file);
    }
  },
});

Deno.test("log_buffer grows in its place, gives memory back, and knows its end", () => {
  using mb = MoonBright.open({ device: "host" });
  using log = new LogBuffer(mb, 8 * MIB);
  const { address } = log;
  for (let round = 0; round < 2; round++) {
    const lines = Array.from(
      { length: 700 },
      (_, i) => `${round} ${i} ${"x".repeat(i * 11 % 10_000)}`,
    );
    for (const line of lines) log.append(line);
    assert(log.capacity > 2 * MIB && log.capacity < log.used + 2 * MIB);
    assertEquals(log.address, address);
    assertEquals(log.drain(), lines.map((line) => `${line}\n`).join(""));
    assertEquals(log.capacity, mb.device.granularity);
  }
  const error = assertThrows(
    () => {
      while (true) log.append("x".repeat(100_000));
    },
    MoonBrightError,
  );
  assertEquals(error.code, "cannot-grow");
  assert(log.used > 7 * MIB);
});

Deno.test("streams hand memory round, and no buffer is overwritten in use", () => {
  const { buffers, wrong, mapped } = runStreams("host", 3, 40);
  assertEquals([buffers, wrong], [120, 0]);
  assert(mapped <= 16 * MIB, `${mapped} bytes`);
});

Deno.test("out_of_memory drops what is cached, then asks for less", () => {
  using mb = MoonBright.open({ device: "host", budget: 64 * MIB });
  const cache = new Cache();
  for (let i = 0; i < 6; i++) cache.add(mb.alloc(8 * MIB));
  // Only as much is dropped as has to be.
  const first = allocDropping(mb, cache, 24 * MIB);
  assertEquals(cache.size, 5);
  const { block, items } = allocBatch(mb, cache, 100, MIB);
  assertEquals([cache.size, items], [0, 25]);
  assertThrows(() => allocBatch(mb, cache, 4, 64 * MIB), OutOfMemoryError);
  for (const one of [first, block]) one.free();
  assertEquals(mb.stats().live, 0);
});

Deno.test("a worker does jobs on a device of its own", async () => {
  using worker = new DeviceWorker("host");
  const sums = await Promise.all(
    [1, 1000, 5000].map((length) =>
      worker.add(
        new Float32Array(length).fill(length),
        new Float32Array(length).fill(0.5),
      )
    ),
  );
  assertEquals(sums.map((sum) => sum.length), [1, 1000, 5000]);
  for (const sum of sums) assert(sum.every((x) => x === sum.length + 0.5));
});

Deno.test("a worker without a device says so, to every job", async () => {
  using worker = new DeviceWorker("host:9");
  const job = () => worker.add(new Float32Array(1), new Float32Array(1));
  await assertRejects(job, Error, "host:9");
  await assertRejects(job, Error, "host:9");
});

for (
  const [example, output] of Object.entries({
    vector_add: /^1000000 sums, the last is 2999997\n$/,
    log_buffer: /8 MiB taken.*\n2095 lines read back, 2 MiB kept\n$/s,
    streams: /^200 buffers of 200 MiB in all, 0 wrong words\n\d+ MiB/,
    out_of_memory: /got \d+; \d+ cached blocks are left\nno room for 1 GiB/,
    worker: /^0\.5 1\.5 .* 19\.5\nthe main thread went round [1-9]\d* times/,
  })
) {
  Deno.test(`examples/${example}.ts runs as the README says`, async () => {
    const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", `examples/${example}.ts`, "host"],
      cwd: ROOT,
      env: { NO_COLOR: "1" },
    }).output();
    assertEquals([code, new TextDecoder().decode(stderr)], [0, ""]);
    assertMatch(new TextDecoder().decode(stdout), output);
  });
}

function isThere(program: string): boolean {
  try {
    return new Deno.Command(program, { args: ["--version"] }).outputSync()
      .success;
  } catch {
    return false;
  }
}
