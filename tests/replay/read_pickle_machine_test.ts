import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import fc from "fast-check";
import { TraceAction } from "../../lib/replay/trace.ts";
import { MAX_STACK } from "../../lib/replay/read/limits.ts";
import { pickled } from "./pickle_writer.ts";
import {
  read,
  readOrRefuse,
  refusal,
  rowsOf,
} from "./trace_reader_test_data.ts";

type Piece = number | string | readonly Piece[];

/** Opcodes as numbers or characters, and raw bytes. */
function assemble(...pieces: Piece[]): Uint8Array {
  const flat = (piece: Piece): number[] =>
    typeof piece === "number"
      ? [piece]
      : typeof piece === "string"
      ? Array.from(piece, (character) => character.charCodeAt(0))
      : piece.flatMap(flat);
  return Uint8Array.from(pieces.flatMap(flat));
}

function u32(value: number): number[] {
  return [0, 8, 16, 24].map((shift) => value >>> shift & 255);
}

/** A string of protocol 4 on the stack. */
function str(text: string): Piece {
  return [0x8c, text.length, text];
}

const PROTO = [0x80, 4];
const EVENT: Piece = [
  "}(",
  [str("action"), str("alloc")],
  [str("addr"), "J", u32(65536)],
  [str("size"), "K", 100],
  "u",
];
const ONE_EVENT: Piece = [
  PROTO,
  "}",
  str("device_traces"),
  "]]",
  EVENT,
  "aas.",
];

async function assertRefused(bytes: Uint8Array, message: string) {
  const error = await refusal(bytes);
  assertStringIncludes(error.message, message);
  assertEquals(typeof error.offset, "number");
}

Deno.test("a snapshot made of rare opcodes is read all the same", async () => {
  const bytes = assemble(
    PROTO,
    // DICT and LIST, and strings with long lengths.
    ["(", "X", u32(8), "segments", "(", "l"],
    [0x8d, u32(13), u32(0), "device_traces"],
    // Things on the way that are dropped: POP, POP_MARK.
    ["K", 5, "0", "(K", 5, "N1", "(0"],
    ["]", "("],
    ["(", [str("action"), "q", 7], "U", 5, "alloc"],
    [str("addr"), 0x8b, u32(6), u32(0x12345678), 0x34, 0x12],
    [str("size"), "M", 0x34, 0x12],
    [str("junk"), "(N", 0x88, 0x89, ")", "t"],
    [str("set"), 0x8f, "(K", 1, 0x90],
    [str("frozen"), "(K", 1, 0x91],
    [str("bytes"), "B", u32(300), new Array(300).fill(1)],
    [str("tuples"), "N", 0x85, "N", 0x86, "NN", 0x87],
    [str("array"), 0x96, u32(3), u32(0), "abc"],
    [str("float"), "G", new Array(8).fill(64)],
    "d",
    // The key is recalled, and the dict is filled by single items.
    ["}", "h", 7, "T", u32(4), "free", "s"],
    [str("addr"), 0x8a, 0, "s"],
    [str("stream"), 0x8a, 2, 0, 127, "s"],
    "l",
    "a",
    "d",
    [0x80, 5, "."],
  );
  const [trace] = await read(bytes);
  assertEquals(rowsOf(trace!), [
    [TraceAction.ALLOC, 0x123412345678, 0x1234, 0, 0],
    [TraceAction.FREE, 0, 0, 1, 0],
  ]);
  assertEquals(trace!.streams, ["0", String(127 * 256)]);
});

Deno.test("what would execute something is refused, by name and place", async () => {
  const executing: Record<string, Piece> = {
    GLOBAL: "cos\nsystem\n",
    INST: "(ios\nsystem\n",
    STACK_GLOBAL: [str("os"), str("system"), 0x93],
    REDUCE: "))R",
    BUILD: "}}b",
    NEWOBJ: [")", ")", 0x81],
    NEWOBJ_EX: [")", ")", "}", 0x92],
    OBJ: "(o",
    EXT1: [0x82, 1],
    EXT2: [0x83, 1, 0],
    EXT4: [0x84, 1, 0, 0, 0],
    PERSID: "P1\n",
    BINPERSID: "NQ",
    NEXT_BUFFER: [0x97],
    READONLY_BUFFER: ["N", 0x98],
  };
  for (const [name, code] of Object.entries(executing)) {
    const bytes = assemble(PROTO, code, ".");
    const error = await refusal(bytes);
    assertStringIncludes(error.message, `opcode ${name} would have Python`);
    assert(error.offset! >= 2 && error.offset! < bytes.length - 1, name);
  }
});

Deno.test("an opcode that is not carried out is refused wherever it stands", async () => {
  const known = new Set(
    assemble(
      "().01BCGJKMNTUX]adehjlqrstu}",
      [0x80, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e],
      [0x8f, 0x90, 0x91, 0x94, 0x95, 0x96],
    ),
  );
  for (let opcode = 0; opcode < 256; opcode++) {
    if (known.has(opcode)) continue;
    for (const rest of [[], new Array(300).fill(0x4e)]) {
      const { offset, message } = await refusal(
        assemble(PROTO, "}", opcode, rest),
      );
      assertEquals(offset, 3);
      assert(/opcode (0x)?\w+/.test(message));
    }
  }
});

Deno.test("protocols other than 2 to 5 are refused, with what to do", async () => {
  for (const protocol of [0, 1, 6, 255]) {
    await assertRefused(
      assemble(0x80, protocol, "}."),
      `expected pickle protocol 2 to 5, got ${protocol}; write it again`,
    );
  }
  for (const old of ["(dp0\nVsegments\np1\n(lp2\ns.", "}q\x00(X", "(lp1\n."]) {
    const error = await refusal(assemble(old));
    assertStringIncludes(error.message, "protocol 2 to 5, got 0 or 1");
  }
});

Deno.test("lengths beyond the end of the file are refused without room being made", async () => {
  const largest = [u32(0xffffffff), u32(0x7fffffff)];
  const long: Piece[] = [
    ["X", u32(0xffffffff), "abc"],
    ["B", u32(0xfffffffe)],
    ["T", u32(0x7fffffff)],
    [0x8b, u32(0x7fffffff), 1],
    [0x8d, largest],
    [0x8e, largest, "abc"],
    [0x96, largest],
    [0x8c, 255, "abc"],
    [0x8c, 5, "allo"],
    [0x8a, 200, "abc"],
    [0x8a, 8, "abc"],
  ];
  for (const code of long) {
    await assertRefused(assemble(PROTO, "}", code), "cut short");
  }
  for (const code of [["T", u32(0xffffffff)], [0x8b, u32(0x80000000)]]) {
    await assertRefused(assemble(PROTO, "}", code, "."), "a length is -");
  }
});

Deno.test("a frame may say any length: the stream decides", async () => {
  const framed = assemble(
    PROTO,
    0x95,
    new Array(8).fill(255),
    (ONE_EVENT as Piece[]).slice(1),
  );
  assertEquals((await read(framed))[0]!.events.count, 1);
});

Deno.test("a stack that does not hold what an opcode takes is refused", async () => {
  const broken: Piece[] = [
    "a",
    "s",
    "e",
    "u",
    "d",
    "l",
    "t",
    "1",
    "0",
    [0x85],
    ["N", 0x86],
    ["NN", 0x87],
    [0x94],
    ["q", 0],
    "(.",
    ".",
    "NN.",
    "]a",
    "}Ns",
    "](Na",
    "}(NNs",
    ["NN(N", 0x86],
    "}(NNNu",
    "(NNNd",
    "}(Ne",
    "](NNu",
    "(e",
    "(u",
    "N(Ne",
    "((e",
    "](]((e",
  ];
  for (const code of broken) {
    await assertRefused(assemble(PROTO, code, "."), "damaged");
  }
});

Deno.test("objects are known by numbers that have been given to them only", async () => {
  await assertRefused(assemble(PROTO, "h", 0, "."), "no object number 0");
  await assertRefused(assemble(PROTO, "j", u32(0xffffffff), "."), "no object");
  await assertRefused(assemble(PROTO, "}", 0x94, "h", 1, "."), "no object");
  for (const number of [100, 2 ** 20, 0xffffffff]) {
    await assertRefused(
      assemble(PROTO, "}r", u32(number), "."),
      `object number ${number} is out of order`,
    );
  }
});

Deno.test("what is recalled but not kept can't be filled", async () => {
  await assertRefused(assemble(PROTO, "]", 0x94, "h", 0, "Na."), "no list");
  await assertRefused(assemble(PROTO, "}", 0x94, "h", 0, "NNs."), "no dict");
});

Deno.test("recalled strings keep their meaning, whatever was memoized between", async () => {
  const names = ["action", "alloc", "addr", "size"];
  const memo: Piece[] = names.map((name) => [str(name), 0x94, "0"]);
  const between = new Array(300).fill(["N", 0x94, "0"]);
  const event = ["}(h", 0, "h", 1, "h", 2, "K", 1, "h", 3, "K", 2, "u"];
  const bytes = assemble(
    [PROTO, memo, between],
    ["}", str("device_traces"), "]]", event, "aas."],
  );
  const [trace] = await read(bytes);
  assertEquals(rowsOf(trace!), [[TraceAction.ALLOC, 1, 2, 0, 0]]);
});

Deno.test("deep nesting ends in an error, not in a crash", async () => {
  const deep = (opcode: string, count: number) =>
    assemble(PROTO, opcode.repeat(count));
  for (const opcode of ["]", "}", "(", "N", "(]"]) {
    await assertRefused(deep(opcode, MAX_STACK + 1), "values pending");
  }
  const nested = assemble(
    PROTO,
    "]".repeat(MAX_STACK),
    "a".repeat(MAX_STACK - 1),
    ".",
  );
  assertStringIncludes(
    (await refusal(nested)).message,
    "not of a memory snapshot",
  );
});

Deno.test("data behind the pickle are refused", async () => {
  assertEquals((await read(assemble(ONE_EVENT)))[0]!.events.count, 1);
  await assertRefused(assemble(ONE_EVENT, 0), "the file goes on");
  await assertRefused(assemble(ONE_EVENT, ONE_EVENT), "the file goes on");
});

Deno.test("more lists of events than any machine has devices are refused", async () => {
  const lists = Array.from({ length: 1025 }, (_, i) => [
    { action: "alloc", addr: i, size: 1 },
  ]);
  await assertRefused(
    pickled({ device_traces: lists }, 4),
    "more than 1024 lists of events",
  );
});

Deno.test("more streams than any program has are refused", async () => {
  const events = Array.from({ length: 2 ** 16 + 1 }, (_, i) => ({
    action: "alloc",
    addr: i,
    size: 1,
    stream: i,
  }));
  await assertRefused(
    pickled({ device_traces: [events] }, 4),
    "more than 65536 streams",
  );
});

Deno.test("any sequence of opcodes gives traces or a refusal", async () => {
  const opcodes = assemble(
    "().01BCGJKMNTUX]adehjlqrstu}",
    [0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e, 0x8f],
    [0x90, 0x91, 0x94, 0x95, 0x96],
  );
  const piece = fc.oneof(
    fc.constantFrom(...opcodes).map((opcode) => [opcode]),
    fc.array(fc.nat(255), { maxLength: 4 }),
    fc.constantFrom("action", "alloc", "addr", "size", "device_traces").map(
      (text) => [...assemble(str(text))],
    ),
    fc.constant([...assemble(EVENT)]),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece), async (pieces) => {
      await readOrRefuse(assemble(PROTO, pieces, "."));
    }),
    { numRuns: 1000 },
  );
});
