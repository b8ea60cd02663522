import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { renderMap } from "../../lib/cli/map_text.ts";
import { styleFor } from "../../lib/cli/style.ts";
import { mapHtml } from "../../lib/live/map_html.ts";
import { mapSvg } from "../../lib/live/map_svg.ts";
import { layOut, rowsOf } from "../../lib/live/memory_layout.ts";
import { checkSnapshot, parseSnapshot } from "../../lib/live/read_snapshot.ts";
import { TraceFormatError } from "../../lib/replay/read/trace_format_error.ts";
import type { Snapshot } from "../../lib/snapshot.ts";
import { CoherenceWorld } from "../lib/coherence_world.ts";
import { randomSteps } from "../lib/random_walk.ts";
import { GRANULE, openGated, openModel } from "../lib/support.ts";
import { checkMarkup } from "../replay/markup_check.ts";

const plain = styleFor(false);

function randomSnapshot(seed: number): Snapshot {
  const world = new CoherenceWorld({
    name: "map",
    allocator: { budget: 96 * GRANULE, addressSpace: 2 ** 40 },
    device: {},
    mostStreams: 3,
  }, seed);
  for (const step of randomSteps(seed, 120)) world.run(step);
  const snapshot = world.mb.snapshot();
  // Names as nasty as a program may give them.
  snapshot.blocks.forEach((block, index) => {
    if (block.state === "live" && index % 3 > 0) {
      block.name = ["a<b>&\"'", "\x1b[2J\n", "\ud800", "weights"][index % 4]!;
    }
  });
  return snapshot;
}

Deno.test("any snapshot reads back, is laid out whole, and can be drawn", () => {
  fc.assert(
    fc.property(
      fc.nat(2 ** 31),
      fc.integer({ min: 9, max: 20 }),
      (seed, log) => {
        const snapshot = randomSnapshot(seed);
        const read = parseSnapshot(JSON.stringify(snapshot), "file");
        assertEquals(checkSnapshot(snapshot, "here"), read);
        const layout = layOut(read);
        const { totals } = layout;
        assertEquals(totals.mapped, snapshot.stats.mapped);
        assertEquals(totals.named + totals.unnamed, snapshot.stats.live);
        assertEquals(totals.pending, snapshot.stats.pending);
        assertEquals(
          layout.stretches.flatMap(({ blocks }) => blocks).length,
          snapshot.blocks.length,
        );
        for (const stretch of layout.stretches) {
          const bytes = stretch.blocks.reduce((sum, { size }) => sum + size, 0);
          assertEquals(bytes, stretch.size, "blocks cover a stretch");
          let address = stretch.address;
          for (const row of rowsOf(stretch, 2 ** log)) {
            assertEquals(row.address, address);
            address += row.size;
            const touches = (one: { address: number; size: number }) =>
              one.address < row.address + row.size &&
              one.address + one.size > row.address;
            assertEquals(row.blocks, stretch.blocks.filter(touches));
            assertEquals(row.extents, stretch.extents.filter(touches));
          }
          assertEquals(address, stretch.address + stretch.size);
        }
        checkMarkup(mapSvg(layout), "xml");
        checkMarkup(mapHtml(layout), "html");
        const text = renderMap(layout, {
          columns: 100,
          unicode: false,
          style: plain,
        });
        const moves = /\p{C}/u.test(text.replaceAll("\n", ""));
        assert(!moves, "nothing moves a cursor");
      },
    ),
    { numRuns: 25 },
  );
});

Deno.test("a map shows letters, free places, and where extents begin", () => {
  const { mb } = openGated();
  const stream = mb.createStream();
  mb.alloc(2 * GRANULE, { name: "weights" });
  const freed = mb.alloc(GRANULE);
  mb.alloc(GRANULE, { name: "cache" });
  const used = mb.alloc(GRANULE);
  mb.alloc(GRANULE);
  used.useOn(stream);
  used.free();
  freed.free();
  const layout = layOut(mb.snapshot());
  const draw = (unicode: boolean) =>
    renderMap(layout, {
      columns: 40,
      unicode,
      style: plain,
      cellBytes: GRANULE / 2,
    }).split("\n");
  const address = `0x${
    layout.stretches[0]!.address.toString(16).padStart(12, "0")
  }`;
  assertEquals(draw(false).slice(1, 3), [
    `${address} AAAA..BB~~##`,
    `${" ".repeat(15)}+---+-+-+-+-`,
  ]);
  assertEquals(draw(true)[1], `${address} AAAA░░BB▒▒██`);
  const legend = draw(false);
  assert(legend.some((line) => /^A +weights +1 +8 KiB$/.test(line)));
  assert(legend.some((line) => /^B +cache +1 +4 KiB$/.test(line)));
  assert(
    legend.includes("a letter is 2 KiB; + begins one of 5 mapped extents"),
  );
});

Deno.test("a cell shows what takes most of it, blocks of a name together", () => {
  const { mb } = openModel();
  mb.alloc(1024, { name: "large" });
  for (let i = 0; i < 3; i++) mb.alloc(512, { name: "small" });
  const text = renderMap(layOut(mb.snapshot()), {
    columns: 80,
    unicode: false,
    style: plain,
    cellBytes: GRANULE,
  });
  // 1024 of large, 1536 of small, 1536 free: the first of those that take as much.
  assert(/^0x[0-9a-f]{12} A$/m.test(text), text);
  assert(/^A +small/m.test(text));
});

Deno.test("more names than letters share one", () => {
  const { mb } = openModel();
  for (let i = 0; i < 60; i++) mb.alloc(512 * (60 - i), { name: `n${i}` });
  const { names } = layOut(mb.snapshot());
  assertEquals(names.length, 60);
  assertEquals(
    names.slice(0, 52).map(({ letter }) => letter).join("").length,
    52,
  );
  assertEquals(
    new Set(names.slice(0, 52).map(({ letter }) => letter)).size,
    52,
  );
  assertEquals(names.slice(52).map(({ letter }) => letter), Array(8).fill("*"));
});

Deno.test("an instance that holds nothing has a map", () => {
  const { mb } = openModel();
  const layout = layOut(mb.snapshot());
  const look = { columns: 80, unicode: true, style: plain };
  assert(renderMap(layout, look).includes("nothing is mapped"));
  checkMarkup(mapSvg(layout, { theme: "dark" }), "xml");
  checkMarkup(mapHtml(layout), "html");
});

Deno.test("what is no snapshot is refused with what is wrong", () => {
  const { mb } = openModel();
  mb.alloc(GRANULE, { name: "x" });
  mb.alloc(GRANULE);
  const good = () => JSON.parse(JSON.stringify(mb.snapshot()));
  // deno-lint-ignore no-explicit-any
  const damages: [string, (snapshot: any) => unknown][] = [
    ["object", () => 3],
    ["object", () => []],
    ["version 1", (s) => ({ ...s, schemaVersion: 2 })],
    ["version 1", () => ({})],
    ["arena", (s) => ({ ...s, arena: null })],
    ["device", (s) => ({ ...s, device: "cuda" })],
    ["list", (s) => ({ ...s, blocks: {} })],
    ["extent 1: ", (s) => (s.extents[1].size = -1, s)],
    ["extent 0: ", (s) => (s.extents[0].address = "0x0", s)],
    ["block 0: ", (s) => (s.blocks[0].size = 0, s)],
    ["block 0: ", (s) => (s.blocks[0].state = "lost", s)],
    ["block 0: ", (s) => (s.blocks[0].name = 5, s)],
    ["block 1: ", (s) => (s.blocks[1] = null, s)],
    ["overlap", (s) => (s.blocks[0].size += 512, s)],
    ["overlap", (s) => (s.extents[0].size += 1, s)],
    ["retired mapping 0: ", (s) => (s.retired = [{}], s)],
  ];
  for (const [says, damage] of damages) {
    const text = JSON.stringify(damage(good()));
    const error = assertThrows(
      () => parseSnapshot(text, "s.json"),
      TraceFormatError,
      says,
    );
    assert(error.message.startsWith('Cannot read "s.json"'), error.message);
  }
  assertThrows(() => parseSnapshot("{", "s.json"), TraceFormatError, "no JSON");
});
