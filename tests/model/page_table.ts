import type { Access } from "../../lib/driver.ts";
import type { Extent } from "./physical_memory.ts";

/** An extent at an address of the model device. */
export interface Mapping {
  /** First byte. */
  readonly address: number;
  /** What is mapped there, always from its first byte to its last. */
  readonly extent: Extent;
  /** Rights that an access has which walks the table now. */
  access: Access;
  /** False once it was unmapped. */
  installed: boolean;
}

/** All installed mappings, by address. They never overlap. */
export class PageTable {
  /** Ascending by address. */
  readonly #mappings: Mapping[] = [];

  /** How many mappings are installed. */
  get count(): number {
    return this.#mappings.length;
  }

  /** Index of the first mapping that ends above `address`. */
  #firstEndingAbove(address: number): number {
    let low = 0;
    let high = this.#mappings.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const mapping = this.#mappings[middle]!;
      if (mapping.address + mapping.extent.size > address) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The mapping that holds the byte at `address`. */
  find(address: number): Mapping | undefined {
    const mapping = this.#mappings[this.#firstEndingAbove(address)];
    return mapping && mapping.address <= address ? mapping : undefined;
  }

  /** The mappings that touch a range, in order. */
  touching(address: number, size: number): Mapping[] {
    const first = this.#firstEndingAbove(address);
    let end = first;
    while (
      end < this.#mappings.length &&
      this.#mappings[end]!.address < address + size
    ) end++;
    return this.#mappings.slice(first, end);
  }

  /** The mappings that make up a range, or undefined if a byte has none. */
  covering(address: number, size: number): Mapping[] | undefined {
    const mappings = this.touching(address, size);
    let reached = address;
    for (const mapping of mappings) {
      if (mapping.address > reached) return undefined;
      reached = mapping.address + mapping.extent.size;
    }
    return reached >= address + size ? mappings : undefined;
  }

  /** As `covering`, but undefined too if a mapping sticks out of the range. */
  exactly(address: number, size: number): Mapping[] | undefined {
    const mappings = this.covering(address, size);
    const first = mappings?.[0];
    const last = mappings?.at(-1);
    if (!first || !last || first.address !== address) return undefined;
    return last.address + last.extent.size === address + size
      ? mappings
      : undefined;
  }

  /** Installs a mapping; the caller has checked that its range is free. */
  install(address: number, extent: Extent, access: Access): Mapping {
    const mapping = { address, extent, access, installed: true };
    this.#mappings.splice(this.#firstEndingAbove(address), 0, mapping);
    extent.mappings++;
    return mapping;
  }

  /** Takes away neighbouring mappings, as `exactly` gave them. */
  remove(mappings: readonly Mapping[]): void {
    const first = mappings[0];
    if (!first) return;
    this.#mappings.splice(
      this.#firstEndingAbove(first.address),
      mappings.length,
    );
    for (const mapping of mappings) {
      mapping.installed = false;
      mapping.extent.mappings--;
    }
  }

  /** Takes all mappings away. */
  clear(): void {
    this.remove([...this.#mappings]);
  }
}
