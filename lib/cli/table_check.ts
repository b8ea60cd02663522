/**
 * Reads a page table back and checks what the kernels wrote.
 *
 * @module
 */

import type { Driver } from "../driver.ts";
import type { MoonBright } from "../moonbright.ts";
import { checksumBlock } from "../paging/argument_blocks.ts";
import { decode, encode } from "../paging/formats.ts";
import { readGeometry } from "../paging/launch_sizes.ts";
import type { PagedSpace } from "../paging/paged_space.ts";
import type { EntryReport } from "./table_report.ts";
import type { ExpectedPage } from "./table_scenario.ts";

/** The entries of a space's table, after all work on the device. */
export function readTable(mb: MoonBright, space: PagedSpace): BigUint64Array {
  const entries = new BigUint64Array(space.pages);
  mb.synchronize();
  mb.driver.copyOut(new Uint8Array(entries.buffer), space.table, 0);
  return entries;
}

/**
 * Decodes an entry and says what is wrong with it. Its frame is right if what was written
 * to the page is there.
 *
 * @param frames address of frame 0
 */
export function checkEntry(
  driver: Driver,
  space: PagedSpace,
  frames: number,
  page: number,
  entry: bigint,
  expected: ExpectedPage | undefined,
): EntryReport {
  const { format, pageSize } = space;
  const { valid, address, readOnly, version } = decode(format, entry);
  const memory = Number(address) + space.entryOrigin;
  const frame = (memory - frames) / pageSize;
  const isFrame = valid && Number.isInteger(frame) && frame >= 0 &&
    frame < space.stats().backedFrames;
  const report: EntryReport = {
    page,
    entry: hex(entry),
    valid,
    frame: isFrame ? frame : null,
    address: valid ? hex(address) : null,
    readOnly: valid && readOnly,
    version: valid ? version : 0,
    range: expected?.range ?? null,
    problem: null,
  };
  const differsFrom = (wanted: bigint) =>
    entry === wanted ? null : `it should be ${hex(wanted)}`;
  if (expected === undefined) report.problem = differsFrom(format.invalid);
  else if (!isFrame) report.problem = "it names no frame of the space";
  else if (readWord(driver, memory) !== expected.word) {
    report.problem = `frame ${frame} holds something else than the page`;
  } else {
    const kind = { ...expected, pageSize, inLeafTable: true };
    report.problem = differsFrom(encode(format, { ...kind, address }));
  }
  return report;
}

/** The checksum of a space's table, by the kernel. */
export function deviceChecksum(
  mb: MoonBright,
  space: PagedSpace,
  image: Uint8Array,
): bigint {
  const { backend, processors } = mb.device;
  using module = mb.loadModule(image);
  using sum = mb.alloc(8);
  sum.fill(0);
  mb.driver.launch(
    module.kernel("mb_checksum").driverId,
    readGeometry(8 * space.pages, backend, processors),
    checksumBlock(space.table, space.pages, sum.address),
    0,
  );
  return readWord(mb.driver, sum.address);
}

/** A word as hexadecimal digits. */
export function hex(word: bigint | number): string {
  return `0x${word.toString(16)}`;
}

function readWord(driver: Driver, address: number): bigint {
  const word = new BigUint64Array(1);
  driver.copyOut(new Uint8Array(word.buffer), address, 0);
  return word[0]!;
}
