import { assertEquals, assertLess } from "@std/assert";
import fc from "fast-check";
import { htmlReport } from "../../lib/replay/report/html_report.ts";
import { packPlacements } from "../../lib/replay/report/pack_placements.ts";
import { unpackPlacements } from "../../lib/replay/report/page/unpack.js";
import type { Placements } from "../../lib/replay/report_data.ts";
import { emptyReport, seeded } from "./sample_report.ts";

type Row = [address: number, bytes: number, from: number, to: number];

function placements(rows: Row[]): Placements {
  return {
    address: Float64Array.from(rows, ([address]) => address),
    bytes: Float64Array.from(rows, ([, bytes]) => bytes),
    from: Uint32Array.from(rows, ([, , from]) => from),
    to: Uint32Array.from(rows, ([, , , to]) => to),
  };
}

async function roundTrip(rows: Row[]): Promise<Row[]> {
  const { data, ...shape } = await packPlacements(placements(rows));
  const { count, address, bytes, from, to } = await unpackPlacements(
    shape,
    data,
  );
  return Array.from(
    { length: count },
    (_, i) => [address[i]!, bytes[i]!, from[i]!, to[i]!],
  );
}

function sorted(rows: Row[]): Row[] {
  return rows.toSorted((a, b) =>
    a[2] - b[2] || a[0] - b[0] || a[1] - b[1] || a[3] - b[3]
  );
}

Deno.test("placements come out of packing as they went in, in order", async () => {
  await fc.assert(fc.asyncProperty(
    fc.array(
      fc.tuple(
        fc.oneof(fc.maxSafeNat(), fc.nat(1000).map((n) => n * 2 ** 21)),
        fc.oneof(fc.maxSafeNat(), fc.nat(1000).map((n) => n * 512)),
        fc.nat(2 ** 31),
        fc.nat(2 ** 31),
      ).map(([address, bytes, from, stay]): Row => [
        address,
        bytes,
        from,
        from + stay,
      ]),
    ),
    async (rows) => {
      const out = await roundTrip(rows);
      assertEquals(sorted(out), sorted(rows));
      assertEquals(
        out.map(([, , from]) => from),
        sorted(rows).map(([, , from]) => from),
      );
    },
  ));
});

Deno.test("round addresses are counted in large units", async () => {
  const rows: Row[] = [[0, 2 ** 22, 0, 1], [2 ** 40, 2 ** 21, 0, 9]];
  const { unit, planes, rows: count } = await packPlacements(placements(rows));
  assertEquals({ unit, planes, count }, {
    unit: 2 ** 21,
    planes: [3, 1, 0, 1],
    count: 2,
  });
});

Deno.test("a quarter of a million blocks take less than 4 MB of a page", async () => {
  const random = seeded(3);
  const rows = Array.from({ length: 250_000 }, (_, i): Row => [
    512 * Math.floor(random() * 2 ** 26),
    512 * Math.ceil(2 ** (random() * 18)),
    2 * i,
    2 * i + Math.ceil(2 ** (random() * 12)),
  ]);
  const report = emptyReport();
  const before = (await htmlReport(report)).length;
  report.runs[0]!.map = {
    steps: 500_000,
    blocks: placements(rows),
    extents: placements([[0, 2 ** 36, 0, 500_000]]),
  };
  assertLess((await htmlReport(report)).length - before, 4e6);
});
