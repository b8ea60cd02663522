import type { Access, AddressRange, MapTimes } from "../../lib/driver.ts";
import { DriverError } from "../../lib/errors.ts";
import { AddressSpace } from "./address_space.ts";
import {
  checkAccess,
  checkBatch,
  checkMultiple,
  checkRange,
  checkWhole,
} from "./argument_checks.ts";
import type { Context } from "./context.ts";
import { costAt } from "./costs.ts";
import { unknownId } from "./id_table.ts";
import { hex, Mmu } from "./mmu.ts";
import type { ModelOptions } from "./options.ts";
import { type Mapping, PageTable } from "./page_table.ts";
import { type Extent, PhysicalMemory } from "./physical_memory.ts";
import { PinnedMemory } from "./pinned_memory.ts";

/** The calls on addresses, extents and mappings, with the rules of a real driver. */
export class DeviceMemory {
  /** What accesses go through. */
  readonly mmu: Mmu;
  /** The installed mappings. */
  readonly table = new PageTable();
  /** The extents. */
  readonly physical: PhysicalMemory;
  /** Page-locked memory of the host. */
  readonly pinned = new PinnedMemory();
  /** The reservations. */
  readonly space: AddressSpace;
  readonly #context: Context;
  readonly #granularity: number;
  readonly #unmapFlushes: boolean;

  /** Makes an empty memory. */
  constructor(
    context: Context,
    totalMemory: number,
    granularity: number,
    options: ModelOptions,
  ) {
    this.#context = context;
    this.#granularity = granularity;
    this.#unmapFlushes = options.unmapFlushes ?? true;
    this.physical = new PhysicalMemory(totalMemory);
    this.space = new AddressSpace(
      granularity,
      options.reservable ?? Infinity,
    );
    this.mmu = new Mmu(
      this.table,
      this.pinned,
      granularity,
      options.tlb ?? "keeps",
      (hazard) => context.hazards.push(hazard),
    );
  }

  memoryInfo(): { free: number; total: number } {
    this.#context.enter("memoryInfo");
    return { free: this.physical.free, total: this.physical.total };
  }

  reserve(size: number): number {
    this.#context.enter("reserve");
    checkMultiple("reserve", "the size", size, this.#granularity, 1);
    const address = this.space.reserve(size);
    this.#context.elapsedNs += this.#context.costs.reserveNs;
    return address;
  }

  unreserve(address: number): void {
    this.#context.enter("unreserve");
    checkWhole("unreserve", "the address", address);
    const reservation = this.space.startingAt(address);
    if (!reservation) {
      throw new RangeError(
        `Cannot unreserve: no reservation starts at ${hex(address)}`,
      );
    }
    const inside = this.table.touching(address, reservation.size)[0];
    if (inside) {
      throw new RangeError(
        `Cannot unreserve ${hex(address)}: extent ${inside.extent.id} is ` +
          `still mapped at ${hex(inside.address)}`,
      );
    }
    this.space.unreserve(address);
    this.#context.elapsedNs += this.#context.costs.reserveNs;
  }

  createExtents(sizes: readonly number[]): number[] {
    this.#context.enter("createExtents");
    checkBatch("createExtents", sizes);
    for (const size of sizes) {
      checkMultiple(
        "createExtents",
        "an extent's size",
        size,
        this.#granularity,
        1,
      );
    }
    const extents = this.physical.create(sizes);
    for (const size of sizes) {
      this.#context.elapsedNs += costAt(
        this.#context.costs.createExtentNs,
        size,
      );
    }
    return extents.map((extent) => extent.id);
  }

  releaseExtents(extents: readonly number[]): void {
    this.#context.enter("releaseExtents");
    checkBatch("releaseExtents", extents);
    const chosen = extents.map((id) => this.#extent(id, "releaseExtents"));
    if (new Set(extents).size !== extents.length) {
      throw new RangeError(
        `Cannot releaseExtents: an extent is named twice in ${extents}`,
      );
    }
    for (const extent of chosen) {
      if (extent.mappings === 0) continue;
      throw new RangeError(
        `Cannot release extent ${extent.id}: it is mapped at ` +
          `${extent.mappings} addresses; unmap it first`,
      );
    }
    for (const extent of chosen) {
      this.physical.release(extent);
      this.#context.elapsedNs += costAt(
        this.#context.costs.releaseExtentNs,
        extent.size,
      );
    }
  }

  map(
    address: number,
    extents: readonly number[],
    access: Access = "read-write",
  ): MapTimes {
    this.#context.enter("map");
    checkBatch("map", extents);
    checkMultiple("map", "the address", address, this.#granularity);
    checkAccess("map", access);
    const chosen = extents.map((id) => this.#extent(id, "map"));
    const size = chosen.reduce((sum, extent) => sum + extent.size, 0);
    checkRange("map", address, size);
    if (!this.space.holds(address, size)) {
      throw new RangeError(
        `Cannot map ${size} bytes at ${hex(address)}: no reservation holds ` +
          "the range",
      );
    }
    const inTheWay = this.table.touching(address, size)[0];
    if (inTheWay) {
      throw new RangeError(
        `Cannot map ${size} bytes at ${hex(address)}: extent ` +
          `${inTheWay.extent.id} is mapped at ${hex(inTheWay.address)}`,
      );
    }
    const times = { mapNs: 0, accessNs: 0 };
    let at = address;
    for (const extent of chosen) {
      this.table.install(at, extent, access);
      at += extent.size;
      times.mapNs += costAt(this.#context.costs.mapNs, extent.size);
      times.accessNs += costAt(this.#context.costs.setAccessNs, extent.size);
    }
    this.#context.elapsedNs += times.mapNs + times.accessNs;
    return times;
  }

  setAccess(address: number, size: number, access: Access): void {
    this.#context.enter("setAccess");
    checkAccess("setAccess", access);
    for (const mapping of this.#wholeMappings("setAccess", address, size)) {
      mapping.access = access;
      this.#context.elapsedNs += costAt(
        this.#context.costs.setAccessNs,
        mapping.extent.size,
      );
    }
    this.mmu.tlb.flush(address, size);
  }

  unmap(ranges: readonly AddressRange[]): void {
    this.#context.enter("unmap");
    checkBatch("unmap", ranges);
    const chosen = ranges.map(({ address, size }) =>
      this.#wholeMappings("unmap", address, size)
    );
    const all = chosen.flat();
    if (new Set(all).size !== all.length) {
      throw new RangeError("Cannot unmap: the ranges overlap");
    }
    for (const mappings of chosen) this.table.remove(mappings);
    for (const mapping of all) {
      this.#context.elapsedNs += costAt(
        this.#context.costs.unmapNs,
        mapping.extent.size,
      );
    }
    if (!this.#unmapFlushes) return;
    for (const range of ranges) this.mmu.tlb.flush(range.address, range.size);
  }

  /** Refuses what a driver sees at once; the access itself is checked when it runs. */
  checkUsable(
    operation: string,
    address: number,
    size: number,
    kind: "read" | "write",
  ): void {
    checkRange(operation, address, size);
    checkWhole(operation, "the size", size, 1);
    if (this.pinned.find(address, size)) return;
    const usable = this.table.covering(address, size)?.every(({ access }) =>
      access === "read-write" || (kind === "read" && access === "read")
    );
    if (usable) return;
    throw new DriverError(
      "not-mapped",
      operation,
      `Cannot ${operation}: ${size} bytes at ${hex(address)} are not all ` +
        `mapped for ${kind} access`,
    );
  }

  #extent(id: number, operation: string): Extent {
    const extent = this.physical.get(id);
    if (!extent) throw unknownId("extent", id, operation);
    return extent;
  }

  #wholeMappings(operation: string, address: number, size: number): Mapping[] {
    checkMultiple(operation, "the address", address, this.#granularity);
    checkMultiple(operation, "the size", size, this.#granularity, 1);
    checkRange(operation, address, size);
    const mappings = this.table.exactly(address, size);
    if (mappings) return mappings;
    if (this.table.covering(address, size)) {
      throw new RangeError(
        `Cannot ${operation}: ${size} bytes at ${hex(address)} cut a mapping`,
      );
    }
    throw new DriverError(
      "not-mapped",
      operation,
      `Cannot ${operation}: ${size} bytes at ${
        hex(address)
      } are not all mapped`,
    );
  }

  /** Gives everything back. */
  clear(): void {
    this.table.clear();
    this.physical.clear();
    this.space.clear();
    this.pinned.clear();
  }
}
