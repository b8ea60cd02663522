import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
} from "@std/assert";
import { MoonBrightError } from "../../lib/errors.ts";
import { readTraces } from "../../lib/replay/read/read_trace.ts";
import { TraceFormatError } from "../../lib/replay/read/trace_format_error.ts";
import { pickled } from "./pickle_writer.ts";
import {
  gzipped,
  read,
  refusal,
  streamOf,
  utf8,
} from "./trace_reader_test_data.ts";

const SNAPSHOT = {
  device_traces: [[{ action: "alloc", addr: 4096, size: 512 }]],
  segments: [],
};
const RMM = utf8(
  "Thread,Time,Action,Pointer,Size,Stream\n1,15:47:02.841961,free,0x40,1,0\n",
);
const MOONBRIGHT = utf8(
  '{"format":"moonbright-trace","version":1,"device":0,"streams":["0"]}\n["alloc",4096,512,0,0]\n',
);

Deno.test("the format shows in the content, under any name and packed up to three times", async () => {
  const samples = [
    ["pytorch", pickled(SNAPSHOT, 4)],
    ["rmm", RMM],
    ["moonbright", MOONBRIGHT],
  ] as const;
  for (const [source, plain] of samples) {
    let bytes: Uint8Array = plain;
    for (let layers = 0; layers <= 3; layers++) {
      const [trace] = await read(bytes, [1000], "something.txt");
      assertEquals(trace!.source, source);
      bytes = await gzipped(bytes);
    }
    const error = await refusal(bytes);
    assertStringIncludes(error.message, "packed with gzip more than 3 times");
  }
});

Deno.test("files of something else are refused, with what they are and what to do", async () => {
  const foreign: [string, string][] = [
    ["", "it is empty; expected a memory snapshot of PyTorch, a log of RMM"],
    ["PK\x03\x04\x00\x00\x08\x08", "zip archive, such as torch.save writes"],
    ["\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "a PNG picture"],
    ["%PDF-1.7\n", "a PDF document"],
    ["\x7fELF\x02\x01\x01", "a program"],
    ["\x28\xb5\x2f\xfd\x04\x00", "packed with zstd; unpack it first"],
    ["\xfd7zXZ\x00\x00\x04", "packed with xz"],
    ["BZh91AY&SY", "packed with bzip2"],
    ["SQLite format 3\x00\x10\x00", "an SQLite database"],
    ["<!DOCTYPE html>\n<html>", "if PyTorch's memory_viz made it"],
    ["\x00\x00\x00\x00", "neither text nor a pickle"],
    ["a\x01b", "neither text nor a pickle"],
    ["Hello, world\n", "it is text, but neither"],
    ["\n\n", "it is text, but neither"],
    ["time,size\n1,2\n", "it is text, but neither"],
    ["\xe9t\xe9\n", "expected text in UTF-8"],
    ["x".repeat(3 << 20), "longer than 1048576 characters"],
    ["\x80", "cut short"],
  ];
  for (const [text, message] of foreign) {
    const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
    for (const data of [bytes, await gzipped(bytes)]) {
      const error = await refusal(data, "given.name");
      assertStringIncludes(error.message, message);
      assertStringIncludes(error.message, 'Cannot read "given.name"');
      assert(error instanceof MoonBrightError);
      assertEquals(error.code, "bad-trace");
      assertEquals(error.file, "given.name");
    }
  }
});

Deno.test("damaged gzip is told as such", async () => {
  const plain = pickled({
    ...SNAPSHOT,
    noise: crypto.getRandomValues(new Uint8Array(60_000)),
  }, 4);
  const packed = await gzipped(plain);
  const flipped = packed.slice();
  flipped[packed.length - 6]! ^= 1;
  const damaged = [
    packed.slice(0, 5),
    packed.slice(0, packed.length - 1),
    packed.slice(0, packed.length >> 1),
    flipped,
    Uint8Array.from([...packed, ...packed]),
    Uint8Array.from([...packed, 0]),
  ];
  for (const bytes of damaged) {
    const error = await refusal(bytes);
    assertStringIncludes(error.message, "its gzip data are damaged, cut short");
    assert(error.cause instanceof Error);
  }
});

Deno.test("errors of the data's source are passed on as they are", async () => {
  const trouble = new Error("the disk is gone");
  const packed = await gzipped(pickled(SNAPSHOT, 4));
  for (const bytes of [pickled(SNAPSHOT, 4), packed, RMM, MOONBRIGHT]) {
    for (const length of [0, 1, 3, bytes.length - 2]) {
      let given = false;
      const data = new ReadableStream<Uint8Array>({
        pull(controller) {
          if (given) return controller.error(trouble);
          given = true;
          controller.enqueue(bytes.slice(0, length));
        },
      });
      const error = await assertRejects(() => readTraces("file", data));
      assertEquals(error, trouble);
    }
  }
});

Deno.test("data are cancelled once they are known to be wrong", async () => {
  const endless = async (first: Uint8Array, then: Uint8Array) => {
    let cancelled = false;
    let next = first;
    const data = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(next);
        next = then;
      },
      cancel() {
        cancelled = true;
      },
    });
    await assertRejects(() => readTraces("file", data), TraceFormatError);
    assert(cancelled);
  };
  const zeros = new Uint8Array(100);
  await endless(zeros, zeros);
  await endless(Uint8Array.of(0x80, 4, 0x7d, 0x63), zeros);
  await endless(utf8("hello\n"), zeros);
  await endless(utf8('{"format":'), utf8(" ".repeat(65536)));
  await endless(await gzipped(new Uint8Array(100_000)), zeros);
});

Deno.test("data are given back unlocked, whether they could be read or not", async () => {
  const data = streamOf(RMM, [7]);
  await readTraces("file", data);
  assertEquals(data.locked, false);
  const text = streamOf(utf8("hello"));
  await assertRejects(() => readTraces("file", text), TraceFormatError);
  assertEquals(text.locked, false);
});

Deno.test("a small file can't unpack to much in memory", async () => {
  // 64 MiB of zeros are 64 KiB packed; a reader that took them whole would show it.
  const zeros = new Uint8Array(64 << 20);
  zeros.set([0x80, 4, 0x8e, 0xff, 0xff, 0xff, 0x7f]);
  const packed = await gzipped(zeros);
  assert(packed.length < 1 << 17);
  const error = await refusal(packed);
  assertStringIncludes(error.message, "cut short");
  assertEquals(error.offset, zeros.length);
});
