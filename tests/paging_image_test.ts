import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import { decode, encode, FORMATS } from "../lib/paging/formats.ts";
import {
  buildImage,
  type ImageFormat,
  type ImagePage,
  walk,
} from "../lib/paging/image.ts";

const MIB = 2 ** 20;
const BASE = 0x1000_0000n;

const ADDRESS_BITS: Record<ImageFormat, number> = {
  "nvidia-v2": 49,
  "nvidia-v3": 57,
  "amd-gfx9": 48,
  "amd-gfx10": 48,
  "amd-gfx12": 48,
};

const NAMES = Object.keys(ADDRESS_BITS) as ImageFormat[];

/** Pages of a layout at random, some side by side, that don't overlap. */
function pagesOf(name: ImageFormat): fc.Arbitrary<ImagePage[]> {
  const format = FORMATS[name];
  const span = 2 ** ADDRESS_BITS[name];
  const frames = Number(
    (format.addressMask << BigInt(format.addressShift)) >> 21n,
  );
  const page = fc.record({
    pageSize: fc.constantFrom(...format.flags.keys()),
    region: fc.constantFrom(0, 1, 3, 0.25, 0.5, 0.999999),
    within: fc.nat(4 * MIB - 1),
    frame: fc.nat(Math.min(frames, 2 ** 30)),
    readOnly: fc.boolean(),
    inLeafTable: fc.boolean(),
  }).map(({ pageSize, region, within, frame, readOnly, inLeafTable }) => {
    const start = region < 1 ? Math.floor(region * span) : region * 2 * MIB;
    // NVIDIA's leaf tables hold no pages of 2 MiB.
    const amd = name.startsWith("amd");
    return {
      page: Math.floor((start + within) / pageSize),
      pageSize,
      entry: encode(format, {
        pageSize,
        address: BigInt(frame) * BigInt(2 * MIB),
        readOnly,
        inLeafTable: amd && inLeafTable,
      }),
    };
  });
  return fc.array(page, { maxLength: 30 }).map((pages) =>
    pages.filter((one, i) =>
      !pages.slice(0, i).some((other) => overlap(one, other))
    )
  );
}

function overlap(a: ImagePage, b: ImagePage): boolean {
  return a.page * a.pageSize < (b.page + 1) * b.pageSize &&
    b.page * b.pageSize < (a.page + 1) * a.pageSize;
}

for (const name of NAMES) {
  const format = FORMATS[name];

  Deno.test(`${name}: walking an image finds every page that was put in`, () => {
    fc.assert(
      fc.property(pagesOf(name), fc.nat(), (pages, seed) => {
        const image = buildImage(name, BASE, pages);
        for (const { page, pageSize, entry } of pages) {
          const leaf = decode(format, entry);
          for (const within of [0, seed % pageSize, pageSize - 1]) {
            const address = BigInt(page) * BigInt(pageSize) + BigInt(within);
            const found = walk(image, address);
            assert(found, `0x${address.toString(16)} is not mapped`);
            assertEquals(found.address, leaf.address + BigInt(within));
            assertEquals(found.readOnly, leaf.readOnly);
            // The entry itself, apart from where in the page it is for.
            const part = BigInt(within - within % found.span);
            assertEquals(found.entry - part, entry);
          }
          // Beside the page is only what was put there.
          const next = (page + 1) * pageSize;
          if (next < 2 ** ADDRESS_BITS[name]) {
            assertEquals(
              walk(image, BigInt(next)) !== undefined,
              pages.some((one) =>
                one.page * one.pageSize <= next &&
                next < (one.page + 1) * one.pageSize
              ),
            );
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  Deno.test(`${name}: pages that overlap or lie out of range are refused`, () => {
    const refused = (message: string, ...pages: ImagePage[]) =>
      assertThrows(() => buildImage(name, BASE, pages), RangeError, message);
    const page = (pageSize: number, number: number): ImagePage => ({
      page: number,
      pageSize,
      entry: encode(format, { pageSize, address: 0 }),
    });
    const sizes = [4096, 65536, 2 * MIB];
    for (const first of sizes) {
      for (const second of sizes) {
        // Both hold the address 6 MiB + 64 KiB.
        const at = (size: number) => Math.floor((6 * MIB + 65536) / size);
        refused(
          "two pages are at",
          page(first, at(first)),
          page(second, at(second)),
        );
      }
    }
    const end = 2 ** ADDRESS_BITS[name];
    buildImage(name, BASE, [page(65536, end / 65536 - 1)]);
    refused("Cannot use the virtual address", page(65536, end / 65536));
    refused("Cannot use the virtual address", page(4096, -1));
    refused("has no page", { ...page(4096, 1), pageSize: 3000 });
    refused("has no page", page(4096, 0.5));
    assertThrows(() => buildImage(name, 8n, []), RangeError, "4 KiB");
    assertThrows(
      () => buildImage(name, 2n ** 52n, [page(4096, 0)]),
      RangeError,
      "too high",
    );
    const image = buildImage(name, BASE, []);
    assertEquals(walk(image, 0n), undefined);
    assertThrows(() => walk(image, BigInt(end)), RangeError, "bits");
    assertThrows(() => walk(image, -1n), RangeError, "bits");
    const lost = buildImage(name, BASE, [page(4096, 0)]);
    lost.words = lost.words.slice(0, 512);
    assertThrows(() => walk(lost, 0n), RangeError, "not in the image");
  });
}

Deno.test("directories point to tables as NVIDIA's and AMD's hardware expects", () => {
  const wordsOf = (name: ImageFormat) => {
    const entry = encode(FORMATS[name], { pageSize: 4096, address: 0x5000 });
    return buildImage(name, BASE, [{ page: 1, pageSize: 4096, entry }]).words;
  };
  const nonZero = (words: BigUint64Array) =>
    [...words].map((word, i) => [i, word] as const).filter(([, w]) => w !== 0n);
  // 0x1000_1000 and on, shifted right by 4. The last directory's entries have two halves,
  // of which the upper points to 4 KiB pages.
  assertEquals(nonZero(wordsOf("nvidia-v2")), [
    [0, 0x0100_0102n],
    [512, 0x0100_0202n],
    [1024, 0x0100_0302n],
    [1537, 0x0100_0402n],
    [2049, 0x0600_0000_0000_0501n],
  ]);
  assertEquals(nonZero(wordsOf("nvidia-v3")).slice(0, 5), [
    [0, 0x1000_1002n],
    [512, 0x1000_2002n],
    [1024, 0x1000_3002n],
    [1536, 0x1000_4002n],
    [2049, 0x1000_5002n],
  ]);
  assertEquals(nonZero(wordsOf("amd-gfx10")), [
    [0, 0x1000_1001n],
    [512, 0x1000_2001n],
    [1024, 0x1000_3001n],
    [1537, 0x5071n],
  ]);
});

Deno.test("an unmapped 64 KiB page hides the 4 KiB pages below it", () => {
  for (
    const [name, unmapped] of [["nvidia-v2", 0x20n], [
      "nvidia-v3",
      0x18n,
    ]] as const
  ) {
    const small = {
      page: 17,
      pageSize: 4096,
      entry: encode(FORMATS[name], { pageSize: 4096, address: 0 }),
    };
    const big = (page: number) => ({ page, pageSize: 65536, entry: unmapped });
    const beside = buildImage(name, BASE, [small, big(2)]);
    assert(walk(beside, 17n * 4096n));
    // Put in by hand: the builder refuses pages that overlap.
    const at = beside.words.indexOf(unmapped);
    beside.words[at - 1] = unmapped;
    assertEquals(walk(beside, 17n * 4096n), undefined);
  }
});
