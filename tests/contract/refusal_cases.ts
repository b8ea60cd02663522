import type { Access, Driver } from "../../lib/driver.ts";
import {
  assertRefused,
  assertSameBytes,
  type ContractCase,
  mapNew,
  readBack,
  type Refusal,
  testBytes,
} from "./harness.ts";

const unknown = 0x7ffff;
const notSizes = [0, -1, 1.5, NaN, Infinity, 2 ** 53, 2 ** 64];
const notWhole = [-1, 0.5, NaN, Infinity, 2 ** 53];

interface Standing {
  /** Three extents of a granule, then a granule with nothing mapped. */
  address: number;
  extents: number[];
  granularity: number;
}

/** Builds something, makes calls that must be refused, and checks it is untouched. */
function refusals(
  name: string,
  allowed: Refusal[],
  calls: (driver: Driver, standing: Standing) => Record<string, () => unknown>,
): ContractCase {
  return {
    name: `refused, and nothing changed: ${name}`,
    check(driver) {
      const { granularity } = driver.info;
      const address = driver.reserve(4 * granularity);
      const extents = driver.createExtents(Array(3).fill(granularity));
      driver.map(address, extents);
      const bytes = testBytes(3 * granularity, 1);
      driver.copyIn(address, bytes, 0);
      driver.synchronize();
      const standing = { address, extents, granularity };
      for (const [what, call] of Object.entries(calls(driver, standing))) {
        assertRefused(what, call, ...allowed);
        assertSameBytes(readBack(driver, address, 64), bytes.subarray(0, 64));
      }
      assertSameBytes(readBack(driver, address, bytes.length), bytes);
      const [fourth] = driver.createExtents([granularity]);
      driver.map(address + 3 * granularity, [fourth!]);
      driver.fill(address + granularity, 3, 1, granularity, 0);
      driver.synchronize();
      driver.unmap([{ address, size: 4 * granularity }]);
      driver.releaseExtents([...extents, fourth!]);
      driver.unreserve(address);
    },
  };
}

function each<Value>(
  what: string,
  values: readonly Value[],
  call: (value: Value) => unknown,
): Record<string, () => unknown> {
  return Object.fromEntries(
    values.map((value) => [`${what} ${value}`, () => call(value)]),
  );
}

/** Bad arguments. Each gets a typed error and leaves everything as it was. */
export const refusalCases: ContractCase[] = [
  refusals("sizes that are none", ["argument"], (driver, { granularity }) => {
    const sizes = [...notSizes, 1, granularity - 1, granularity + 1];
    return {
      ...each("a reservation of", sizes, (size) => driver.reserve(size)),
      ...each(
        "a batch with an extent of",
        sizes,
        (size) => driver.createExtents([granularity, size]),
      ),
      "an empty batch": () => driver.createExtents([]),
    };
  }),
  refusals(
    "reservations",
    ["argument"],
    (driver, { address, granularity }) => ({
      ...each(
        "unreserve",
        [...notWhole, 0, address + granularity],
        (at) => driver.unreserve(at),
      ),
      "unreserve with mappings inside": () => driver.unreserve(address),
    }),
  ),
  refusals(
    "extents",
    ["argument", "invalid-handle"],
    (driver, { extents }) => ({
      ...each(
        "release of extent",
        [...notWhole, 0, unknown],
        (id) => driver.releaseExtents([id]),
      ),
      "an empty batch": () => driver.releaseExtents([]),
      "release of a mapped extent": () => driver.releaseExtents([extents[0]!]),
      "a batch with one mapped extent": () => {
        const [loose] = driver.createExtents([driver.info.granularity]);
        try {
          driver.releaseExtents([loose!, extents[1]!]);
        } finally {
          driver.releaseExtents([loose!]);
        }
      },
      "a batch that names an extent twice": () => {
        const [loose] = driver.createExtents([driver.info.granularity]);
        try {
          driver.releaseExtents([loose!, loose!]);
        } finally {
          driver.releaseExtents([loose!]);
        }
      },
      "a second release": () => {
        const [loose] = driver.createExtents([driver.info.granularity]);
        driver.releaseExtents([loose!]);
        driver.releaseExtents([loose!]);
      },
    }),
  ),
  refusals(
    "map",
    ["argument", "invalid-handle"],
    (driver, { address, extents, granularity }) => {
      const hole = address + 3 * granularity;
      return {
        ...each(
          "map at",
          [...notWhole, 0, hole + 1, hole + granularity / 2],
          (at) => driver.map(at, [extents[0]!]),
        ),
        "map of nothing": () => driver.map(hole, []),
        "map over a mapping": () => driver.map(address, [extents[0]!]),
        "map whose second extent is over a mapping": () => {
          driver.unmap([{ address, size: granularity }]);
          try {
            driver.map(address, [extents[0]!, extents[1]!]);
          } finally {
            driver.map(address, [extents[0]!]);
          }
        },
        "map past the reservation's end": () =>
          driver.map(hole, [extents[0]!, extents[1]!]),
        "map of an unknown extent": () => driver.map(hole, [unknown]),
        "map whose second extent is unknown": () => {
          driver.unmap([{ address, size: granularity }]);
          try {
            driver.map(address, [extents[0]!, unknown]);
          } finally {
            driver.map(address, [extents[0]!]);
          }
        },
        "map with unknown rights": () =>
          driver.map(hole, [extents[0]!], "write" as Access),
      };
    },
  ),
  refusals(
    "unmap and setAccess",
    ["argument", "not-mapped"],
    (driver, { address, granularity }) => {
      const ranges: Record<string, [number, number]> = {
        "nothing mapped": [address + 3 * granularity, granularity],
        "a hole at the end": [address, 4 * granularity],
        "half a mapping": [address, granularity / 2],
        "from inside a mapping": [address + 512, granularity],
        "no bytes": [address, 0],
        "a negative size": [address, -granularity],
        "a fractional size": [address, granularity + 0.5],
        "a size that is no number": [address, NaN],
        "an end past 2^53": [address, 2 ** 53 - granularity],
        "an address that is no number": [NaN, granularity],
      };
      const calls: Record<string, () => unknown> = {};
      for (const [what, [at, size]] of Object.entries(ranges)) {
        calls[`unmap: ${what}`] = () => driver.unmap([{ address: at, size }]);
        calls[`unmap: a good range, then ${what}`] = () =>
          driver.unmap([
            { address: address + 2 * granularity, size: granularity },
            { address: at, size },
          ]);
        calls[`setAccess: ${what}`] = () => driver.setAccess(at, size, "read");
      }
      calls["unmap: no range"] = () => driver.unmap([]);
      calls["unmap: one range twice"] = () =>
        driver.unmap([
          { address, size: granularity },
          { address, size: granularity },
        ]);
      calls["setAccess: unknown rights"] = () =>
        driver.setAccess(address, granularity, "write" as Access);
      return calls;
    },
  ),
  refusals("an extent of several granules in part", ["argument"], (driver) => {
    const { granularity } = driver.info;
    const { address } = mapNew(driver, [3 * granularity]);
    return {
      "unmap of its start": () =>
        driver.unmap([{ address, size: granularity }]),
      "unmap of its middle": () =>
        driver.unmap([{ address: address + granularity, size: granularity }]),
      "setAccess of its end": () =>
        driver.setAccess(address + granularity, 2 * granularity, "read"),
    };
  }),
  refusals(
    "streams and events",
    ["argument", "invalid-handle"],
    (driver, { address }) => {
      const event = driver.createEvent();
      const ids = [...notWhole, unknown];
      const target = new Uint8Array(1);
      return {
        ...each("destroyStream", [0, ...ids], (id) => driver.destroyStream(id)),
        ...each("synchronizeStream", ids, (id) => driver.synchronizeStream(id)),
        ...each("streamHandle", ids, (id) => driver.streamHandle(id)),
        ...each(
          "waitEvent on stream",
          ids,
          (id) => driver.waitEvent(id, event),
        ),
        ...each("recordEvent on", ids, (id) => driver.recordEvent(event, id)),
        ...each("fill on", ids, (id) => driver.fill(address, 1, 1, 1, id)),
        ...each("copyIn on", ids, (id) => driver.copyIn(address, target, id)),
        ...each("copyOut on", ids, (id) => driver.copyOut(target, address, id)),
        ...each(
          "copy on",
          ids,
          (id) => driver.copy(address, address + 8, 8, id),
        ),
        ...each("waitEvent for", [0, ...ids], (id) => driver.waitEvent(0, id)),
        ...each(
          "recordEvent of",
          [0, ...ids],
          (id) => driver.recordEvent(id, 0),
        ),
        ...each("queryEvent", [0, ...ids], (id) => driver.queryEvent(id)),
        ...each(
          "synchronizeEvent",
          [0, ...ids],
          (id) => driver.synchronizeEvent(id),
        ),
        ...each("destroyEvent", [0, ...ids], (id) => driver.destroyEvent(id)),
        ...each(
          "elapsedMs from",
          [0, ...ids],
          (id) => driver.elapsedMs(id, event),
        ),
        "a second destroyEvent": () => {
          driver.destroyEvent(event);
          driver.destroyEvent(event);
        },
      };
    },
  ),
  refusals(
    "fills and copies",
    ["argument", "not-mapped"],
    (driver, { address, granularity }) => {
      const end = address + 3 * granularity;
      const bytes = new Uint8Array(2 * granularity);
      return {
        ...each(
          "fill of width",
          [0, 3, 8, -1],
          (width) => driver.fill(address, 1, width as 1, 1, 0),
        ),
        ...each(
          "fill with a count of",
          notWhole,
          (count) => driver.fill(address, 1, 1, count, 0),
        ),
        ...each(
          "fill at",
          [...notWhole, 0],
          (at) => driver.fill(at, 1, 1, 1, 0),
        ),
        "fill with a value wider than its element": () =>
          driver.fill(address, 0x100, 1, 1, 0),
        ...each(
          "fill with a value of",
          [...notWhole, 2 ** 32],
          (value) => driver.fill(address, value, 4, 1, 0),
        ),
        "fill of 2-byte elements at an odd address": () =>
          driver.fill(address + 1, 1, 2, 1, 0),
        "fill of 4-byte elements at an even address": () =>
          driver.fill(address + 2, 1, 4, 1, 0),
        "fill that overruns": () => driver.fill(end - 4, 1, 4, 2, 0),
        "fill of unmapped memory": () => driver.fill(end, 1, 1, 1, 0),
        "copyIn of nothing": () => driver.copyIn(address, new Uint8Array(0), 0),
        "copyOut of nothing": () =>
          driver.copyOut(new Uint8Array(0), address, 0),
        "copyIn that overruns": () =>
          driver.copyIn(end - granularity, bytes, 0),
        "copyIn to unmapped memory": () => driver.copyIn(end, bytes, 0),
        ...each(
          "copyIn at",
          [...notWhole, 0],
          (at) => driver.copyIn(at, bytes, 0),
        ),
        "copyOut that overruns": () =>
          driver.copyOut(bytes, end - granularity, 0),
        "copyOut of unmapped memory": () => driver.copyOut(bytes, end, 0),
        ...each(
          "copyOut at",
          [...notWhole, 0],
          (at) => driver.copyOut(bytes, at, 0),
        ),
        "copy from unmapped memory": () => driver.copy(address, end, 8, 0),
        "copy to unmapped memory": () => driver.copy(end, address, 8, 0),
        "copy between ranges that overlap": () =>
          driver.copy(address, address + 8, 16, 0),
        ...each(
          "copy of",
          notWhole,
          (length) => driver.copy(address, address + granularity, length, 0),
        ),
      };
    },
  ),
  refusals("modules", ["argument", "invalid-handle", "driver"], (driver) => ({
    "an empty image": () => driver.loadModule(new Uint8Array(0)),
    "an image of noise": () => driver.loadModule(testBytes(4096, 3)),
    ...each(
      "unloadModule",
      [...notWhole, 0, unknown],
      (id) => driver.unloadModule(id),
    ),
    ...each(
      "getFunction in module",
      [...notWhole, 0, unknown],
      (id) => driver.getFunction(id, "mb_spin"),
    ),
    ...each(
      "launch of",
      [...notWhole, 0, unknown],
      (id) =>
        driver.launch(id, { grid: [1], block: [1] }, new Uint8Array(8), 0),
    ),
  })),
  {
    name: "fills and copies are refused where access is missing",
    check(driver) {
      const { granularity } = driver.info;
      const { address } = mapNew(driver, Array(3).fill(granularity));
      const bytes = testBytes(3 * granularity, 4);
      driver.copyIn(address, bytes, 0);
      driver.synchronize();
      driver.setAccess(address, granularity, "none");
      driver.setAccess(address + granularity, granularity, "read");
      const target = new Uint8Array(16);
      const readOnly = address + granularity;
      const refused = {
        "copyOut without access": () => driver.copyOut(target, address, 0),
        "fill without access": () => driver.fill(address, 1, 1, 1, 0),
        "fill of read-only memory": () => driver.fill(readOnly, 1, 1, 1, 0),
        "copyIn to read-only memory": () => driver.copyIn(readOnly, target, 0),
        "copy to read-only memory": () =>
          driver.copy(readOnly, readOnly + granularity, 8, 0),
        "copy that runs into read-only memory": () =>
          driver.fill(readOnly + granularity - 4, 1, 4, 2, 0),
      };
      for (const [what, call] of Object.entries(refused)) {
        assertRefused(what, call, "not-mapped");
      }
      driver.setAccess(address, 3 * granularity, "read-write");
      assertSameBytes(readBack(driver, address, bytes.length), bytes);
    },
  },
];
