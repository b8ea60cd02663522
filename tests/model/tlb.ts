import type { Access } from "../../lib/driver.ts";
import type { Mapping } from "./page_table.ts";

/** A cached walk of the page table for one granule. */
export interface Translation {
  /** What the walk found; undefined is a cached invalid entry. */
  readonly mapping: Mapping | undefined;
  /** The rights at the time of the walk. */
  readonly access: Access;
}

/**
 * The cache of translations. It has room for everything and forgets nothing
 * until a flush covers it: the worst that hardware may do.
 */
export class Tlb {
  readonly #entries = new Map<number, Translation>();
  readonly #granularity: number;

  /** Makes an empty cache of translations of granules. */
  constructor(granularity: number) {
    this.#granularity = granularity;
  }

  /** How many translations are cached. */
  get size(): number {
    return this.#entries.size;
  }

  /** The cached translation for the granule that holds `address`. */
  lookup(address: number): Translation | undefined {
    return this.#entries.get(Math.floor(address / this.#granularity));
  }

  /** Caches a translation for the granule that holds `address`. */
  keep(address: number, translation: Translation): void {
    this.#entries.set(Math.floor(address / this.#granularity), translation);
  }

  /** Forgets the granules of a range. */
  flush(address: number, size: number): void {
    const first = Math.floor(address / this.#granularity);
    const end = Math.ceil((address + size) / this.#granularity);
    if (end - first < this.#entries.size) {
      for (let granule = first; granule < end; granule++) {
        this.#entries.delete(granule);
      }
      return;
    }
    for (const granule of this.#entries.keys()) {
      if (granule >= first && granule < end) this.#entries.delete(granule);
    }
  }
}
