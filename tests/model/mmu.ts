import type { Mapping, PageTable } from "./page_table.ts";
import type { PinnedMemory } from "./pinned_memory.ts";
import {
  type Extent,
  fillExtent,
  readExtent,
  writeExtent,
} from "./physical_memory.ts";
import { Tlb, type Translation } from "./tlb.ts";

/** How an address is written in messages. */
export function hex(address: number): string {
  return `0x${address.toString(16)}`;
}

/** An access that the device can't survive; the text says where and why. */
export class MemoryFault extends Error {}

/** What a kernel of the model device sees of memory. */
export interface KernelMemory {
  /** Reads bytes; faults where nothing readable is mapped. */
  read(address: number, bytes: number): Uint8Array;
  /** Writes bytes; faults where nothing writable is mapped. */
  write(address: number, source: Uint8Array): void;
  /** Fills with a 32-bit pattern whose phase is the address's. */
  fill(address: number, pattern: number, bytes: number): void;
  /** Translates an address ahead of its use, as hardware may; never faults. */
  prefetch(address: number): void;
}

/** Whether a walk that finds nothing is cached too. */
export type TlbMode = "keeps" | "keeps-invalid";

/**
 * Every access goes through here: translated granule by granule, when it runs. Page-locked
 * memory of the host needs no translation.
 */
export class Mmu implements KernelMemory {
  /** The cached translations. */
  readonly tlb: Tlb;
  readonly #table: PageTable;
  readonly #pinned: PinnedMemory;
  readonly #granularity: number;
  readonly #mode: TlbMode;
  readonly #report: (hazard: string) => void;

  /** Makes an MMU; `report` hears of accesses through stale translations. */
  constructor(
    table: PageTable,
    pinned: PinnedMemory,
    granularity: number,
    mode: TlbMode,
    report: (hazard: string) => void,
  ) {
    this.tlb = new Tlb(granularity);
    this.#table = table;
    this.#pinned = pinned;
    this.#granularity = granularity;
    this.#mode = mode;
    this.#report = report;
  }

  read(address: number, bytes: number): Uint8Array {
    const pinned = this.#pinned.find(address, bytes);
    if (pinned) return pinned.slice();
    const target = new Uint8Array(bytes);
    this.#access("read", address, bytes, (extent, offset, length, done) => {
      readExtent(extent, offset, target.subarray(done, done + length));
    });
    return target;
  }

  write(address: number, source: Uint8Array): void {
    const pinned = this.#pinned.find(address, source.length);
    if (pinned) return pinned.set(source);
    this.#access(
      "write",
      address,
      source.length,
      (extent, offset, length, done) => {
        writeExtent(extent, offset, source.subarray(done, done + length));
      },
    );
  }

  fill(address: number, pattern: number, bytes: number): void {
    const pinned = this.#pinned.find(address, bytes);
    if (pinned) {
      pinned.forEach((_, at) =>
        pinned[at] = pattern >>> (8 * ((address + at) & 3))
      );
      return;
    }
    this.#access("write", address, bytes, (extent, offset, length) => {
      fillExtent(extent, offset, pattern, length);
    });
  }

  prefetch(address: number): void {
    this.#translate(address);
  }

  #access(
    kind: "read" | "write",
    address: number,
    bytes: number,
    body: (
      extent: Extent,
      offset: number,
      length: number,
      done: number,
    ) => void,
  ): void {
    for (let done = 0; done < bytes;) {
      const at = address + done;
      const length = Math.min(
        this.#granularity - at % this.#granularity,
        bytes - done,
      );
      const mapping = this.#resolve(kind, at);
      body(mapping.extent, at - mapping.address, length, done);
      done += length;
    }
  }

  #translate(address: number): { translation: Translation; cached: boolean } {
    const known = this.tlb.lookup(address);
    if (known) return { translation: known, cached: true };
    const mapping = this.#table.find(address);
    const translation = { mapping, access: mapping?.access ?? "none" };
    if (mapping || this.#mode === "keeps-invalid") {
      this.tlb.keep(address, translation);
    }
    return { translation, cached: false };
  }

  #resolve(kind: "read" | "write", address: number): Mapping {
    const { translation, cached } = this.#translate(address);
    const { mapping, access } = translation;
    if (!mapping) {
      throw fault(
        kind,
        address,
        cached && this.#table.find(address)
          ? "stale invalid translation: mapped since, but never flushed"
          : "the address is unmapped",
      );
    }
    if (mapping.extent.released) {
      throw fault(
        kind,
        address,
        `stale translation: extent ${mapping.extent.id} was released`,
      );
    }
    if (access === "none" || (kind === "write" && access === "read")) {
      throw fault(kind, address, `the mapping's access is "${access}"`);
    }
    if (!mapping.installed) {
      this.#report(
        `${kind} at ${hex(address)} through a stale translation to extent ` +
          `${mapping.extent.id}`,
      );
    }
    return mapping;
  }
}

function fault(
  kind: "read" | "write",
  address: number,
  reason: string,
): MemoryFault {
  return new MemoryFault(`${kind} at ${hex(address)}: ${reason}`);
}
