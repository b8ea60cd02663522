import { assert, assertEquals, assertThrows } from "@std/assert";
import fc from "fast-check";
import {
  decode,
  encode,
  entryFlags,
  FORMATS,
  protectBits,
} from "../lib/paging/formats.ts";

const KIB = 1024;
const MIB = 2 ** 20;

Deno.test("MoonBright's own entries have address, version and rights in their places", () => {
  const format = FORMATS.moonbright;
  const page = { pageSize: 64 * KIB, address: 0x123_4567_0000n };
  assertEquals(encode(format, page), 0x000_0123_4567_0001n);
  assertEquals(
    encode(format, { ...page, readOnly: true, version: 0xABC }),
    0xABC0_0123_4567_0003n,
  );
  assertEquals(encode(format, { ...page, version: 0x1ABC }) >> 52n, 0xABCn);
});

Deno.test("NVIDIA's entries are those worked out from its tables", () => {
  const page = { pageSize: 2 * MIB, address: 0x20_0000n };
  assertEquals(encode(FORMATS["nvidia-v2"], page), 0x0600_0000_0002_0001n);
  assertEquals(encode(FORMATS["nvidia-v3"], page), 0x20_0601n);
  // PCF 0x10: access counters off.
  assertEquals(encode(FORMATS["nvidia-v3"], page) | 0x10n << 3n, 0x20_0681n);
  const readOnly = { ...page, readOnly: true };
  assertEquals(encode(FORMATS["nvidia-v2"], readOnly), 0x0600_0000_0002_0041n);
  assertEquals(encode(FORMATS["nvidia-v3"], readOnly), 0x20_0621n);
});

Deno.test("AMD's entries are those worked out from its tables", () => {
  const huge = { pageSize: 2 * MIB, address: 0x40_0000n };
  const inLeafTable = true;
  for (const name of ["amd-gfx9", "amd-gfx10", "amd-gfx12"] as const) {
    const format = FORMATS[name];
    assertEquals(encode(format, { ...huge, inLeafTable }), 0x40_04F1n);
    assertEquals(
      encode(format, { ...huge, inLeafTable, readOnly: true }),
      0x40_04B1n,
    );
    assertEquals(encode(format, { pageSize: 4096, address: 0x1000 }), 0x1071n);
    assertEquals(
      encode(format, { pageSize: 64 * KIB, address: 0x1_0000 }),
      0x1_0271n,
    );
  }
  assertEquals(encode(FORMATS["amd-gfx9"], huge), 0x0040_0000_0040_04F1n);
  assertEquals(encode(FORMATS["amd-gfx10"], huge), 0x0040_0000_0040_04F1n);
  assertEquals(encode(FORMATS["amd-gfx12"], huge), 0x8000_0000_0040_04F1n);
});

for (const format of Object.values(FORMATS)) {
  const pageSizes = [...format.flags.keys()];

  Deno.test(`${format.name}: what was encoded is decoded`, () => {
    const fits = format.addressMask << BigInt(format.addressShift);
    fc.assert(fc.property(
      fc.constantFrom(...pageSizes),
      fc.bigInt(0n, 2n ** 64n - 1n),
      fc.boolean(),
      fc.nat(10_000),
      (pageSize, anywhere, readOnly, version) => {
        const address = anywhere & fits & ~BigInt(pageSize - 1);
        const entry = encode(format, { pageSize, address, readOnly, version });
        const kept = format.versionMask === 0n ? 0 : version % 4096;
        assertEquals(decode(format, entry), {
          valid: true,
          address,
          readOnly,
          version: kept,
        });
      },
    ));
  });

  Deno.test(`${format.name}: no two fields share a bit, and 64 hold all`, () => {
    for (const pageSize of pageSizes) {
      const flags = entryFlags(format, { pageSize });
      const readOnly = entryFlags(format, { pageSize, readOnly: true });
      assert(flags !== readOnly);
      for (const other of [format.addressMask, format.versionMask]) {
        assertEquals((flags | readOnly) & other, 0n);
        assertEquals(BigInt.asUintN(64, other), other);
      }
      assertEquals(format.addressMask & format.versionMask, 0n);
      assertEquals(BigInt.asUintN(64, flags | readOnly), flags | readOnly);
    }
    assertEquals(decode(format, format.invalid).valid, false);
  });

  Deno.test(`${format.name}: protecting gives what encoding would`, () => {
    for (const pageSize of pageSizes) {
      const page = { pageSize, address: 3n * BigInt(pageSize), version: 5 };
      const writable = encode(format, page);
      const readOnly = encode(format, { ...page, readOnly: true });
      const change = (entry: bigint, forbid: boolean, version?: number) => {
        const { clear, set } = protectBits(format, forbid, version);
        return entry & ~clear | set;
      };
      assertEquals(change(writable, true), readOnly);
      assertEquals(change(readOnly, true), readOnly);
      assertEquals(change(readOnly, false), writable);
      assertEquals(change(writable, false), writable);
      assertEquals(
        change(writable, true, 9),
        encode(format, { ...page, readOnly: true, version: 9 }),
      );
    }
  });

  Deno.test(`${format.name}: what does not fit is refused`, () => {
    const page = { pageSize: pageSizes[0]!, address: 0n };
    const refused = (change: Partial<typeof page & { version: number }>) =>
      assertThrows(
        () => encode(format, { ...page, ...change }),
        RangeError,
        "Cannot encode an entry",
      );
    refused({ pageSize: 2048 });
    refused({ pageSize: 3 * 4096 });
    refused({ pageSize: 4 * MIB });
    refused({ address: 2048n });
    refused({ address: -4096n });
    refused({ address: 2n ** 52n });
    refused({ pageSize: 2 * MIB, address: BigInt(MIB) });
    refused({ version: -1 });
    refused({ version: 1.5 });
    const most = format.addressMask << BigInt(format.addressShift);
    assertEquals(
      decode(format, encode(format, { pageSize: 4096, address: most })).address,
      most,
    );
    refused({ address: most + 4096n });
  });
}
