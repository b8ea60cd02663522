/**
 * Launches the kernels that write a paged space's table and copy its pages.
 *
 * @module
 */

import type { MoonBright } from "../moonbright.ts";
import {
  copyPagesBlock,
  countItems,
  type FrameCopy,
  invalidateBlock,
  materializeListBlock,
  type MaterializeTarget,
  MOST_RUNS,
  protectBlock,
  runList,
  type Span,
} from "./argument_blocks.ts";
import { type EntryFormat, protectBits } from "./formats.ts";
import type { Piece } from "./frame_run.ts";
import { copyGeometry, entriesGeometry, listGeometry } from "./launch_sizes.ts";
import { MaterializeBlock } from "./materialize_block.ts";
import { PinnedRing } from "./pinned_ring.ts";

/** Images of the kernels that a paged space needs. */
export interface PagingImages {
  /** The set `paging_entries`. */
  entries: Uint8Array;
  /** The set `paging_copy`. */
  copy: Uint8Array;
}

/** What the writer needs to know of its space. */
export interface TableLayout {
  /** Device address of the table. */
  table: number;
  /** Device address of frame 0. */
  frames: number;
  /** What entries call frame 0: its device address, or 0. */
  entryBase: number;
  /** Bytes of a page. */
  pageSize: number;
  /** Layout of the entries. */
  format: EntryFormat;
}

/** Writes one table. */
export class TableWriter {
  /** Kernels launched so far. */
  launches = 0;
  /** Numbers of the streams that it launched in. */
  readonly streams: Set<number> = new Set();
  readonly #mb: MoonBright;
  readonly #layout: TableLayout;
  readonly #ring: PinnedRing;
  readonly #short: MaterializeBlock;
  readonly #modules: number[] = [];
  readonly #kernels = {
    materialize: 0,
    materializeList: 0,
    invalidate: 0,
    protect: 0,
    copyPages: 0,
  };

  /**
   * Loads the kernels.
   *
   * @throws {DriverError} if they don't suit the device
   */
  constructor(mb: MoonBright, images: PagingImages, layout: TableLayout) {
    this.#mb = mb;
    this.#layout = layout;
    this.#ring = new PinnedRing(mb);
    this.#short = new MaterializeBlock({ ...layout, frames: layout.entryBase });
    const { driver } = mb;
    const entries = driver.loadModule(images.entries);
    this.#modules.push(entries);
    try {
      const copy = driver.loadModule(images.copy);
      this.#modules.push(copy);
      this.#kernels = {
        materialize: driver.getFunction(entries, "mb_materialize"),
        materializeList: driver.getFunction(entries, "mb_materialize_list"),
        invalidate: driver.getFunction(entries, "mb_invalidate"),
        protect: driver.getFunction(entries, "mb_protect"),
        copyPages: driver.getFunction(copy, "mb_copy_pages"),
      };
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Writes the entries of neighbouring pages from `firstPage` on. */
  materialize(
    stream: number,
    firstPage: number,
    pieces: readonly Piece[],
    readOnly: boolean,
    version: number,
  ): void {
    const { table, entryBase, pageSize, format } = this.#layout;
    const { backend, processors } = this.#mb.device;
    const entries = table + 8 * firstPage;
    const count = this.#short.fill(entries, pieces, readOnly, version);
    if (count > 0) {
      this.#launch(
        this.#kernels.materialize,
        entriesGeometry(count, backend, processors),
        this.#short.bytes,
        stream,
      );
      return;
    }
    const runs = frameRuns(pieces);
    const target: MaterializeTarget = {
      entries,
      frames: entryBase,
      format,
      pageSize,
      readOnly,
      version,
      inLeafTable: true,
    };
    const list = runList(runs);
    const address = this.#ring.write(list.bytes, stream);
    this.#launch(
      this.#kernels.materializeList,
      listGeometry(list.runCount, backend),
      materializeListBlock(target, list, address),
      stream,
    );
  }

  /** Makes entries invalid. */
  clear(stream: number, spans: readonly Span[]): void {
    const { table, format } = this.#layout;
    this.#inBatches(
      stream,
      this.#kernels.invalidate,
      spans,
      (batch) => invalidateBlock(table, format, batch),
    );
  }

  /** Forbids or allows writing in valid entries. */
  protect(
    stream: number,
    spans: readonly Span[],
    readOnly: boolean,
    version: number,
  ): void {
    const { table, format } = this.#layout;
    const change = protectBits(format, readOnly, version);
    this.#inBatches(
      stream,
      this.#kernels.protect,
      spans,
      (batch) => protectBlock(table, format, change, batch),
    );
  }

  /** Copies frames. */
  copyPages(stream: number, copies: readonly FrameCopy[]): void {
    const { frames, pageSize } = this.#layout;
    for (let at = 0; at < copies.length; at += MOST_RUNS) {
      const batch = copies.slice(at, at + MOST_RUNS);
      this.#launch(
        this.#kernels.copyPages,
        copyGeometry(batch.length * pageSize, this.#mb.device.backend),
        copyPagesBlock(frames, pageSize, batch),
        stream,
      );
    }
  }

  /** Whether all kernels are there. */
  get loaded(): boolean {
    return this.#modules.length === 2;
  }

  /**
   * Unloads the kernels and frees the lists, after their work. Goes on where it failed when
   * called again.
   *
   * @throws {RangeError} if graphs hold one of the kernels
   */
  close(): void {
    while (this.#modules.length > 0) {
      this.#mb.driver.unloadModule(this.#modules[0]!);
      this.#modules.shift();
    }
    this.#ring.close();
  }

  #inBatches(
    stream: number,
    kernel: number,
    spans: readonly Span[],
    block: (batch: readonly Span[]) => Uint8Array,
  ): void {
    const { backend, processors } = this.#mb.device;
    for (let at = 0; at < spans.length; at += MOST_RUNS) {
      const batch = spans.length <= MOST_RUNS
        ? spans
        : spans.slice(at, at + MOST_RUNS);
      this.#launch(
        kernel,
        entriesGeometry(countItems(batch), backend, processors),
        block(batch),
        stream,
      );
    }
  }

  #launch(
    kernel: number,
    geometry: Parameters<MoonBright["driver"]["launch"]>[1],
    block: Uint8Array,
    stream: number,
  ): void {
    const driverId = this.#mb.streamByNumber(stream).driverId("launch");
    this.#mb.driver.launch(kernel, geometry, block, driverId);
    this.launches++;
    this.streams.add(stream);
  }
}

/** The frames of pieces as runs; those that continue each other are one. */
function frameRuns(pieces: readonly Piece[]): Span[] {
  const runs: { first: number; count: number }[] = [];
  for (const { run, offset, count } of pieces) {
    const first = run.first + offset;
    const last = runs[runs.length - 1];
    if (last && last.first + last.count === first) last.count += count;
    else runs.push({ first, count });
  }
  return runs;
}
