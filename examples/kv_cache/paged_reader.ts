/**
 * Reads ranges as an attention kernel would: through the page table on the device, so
 * that wrong entries are found as well as wrong contents.
 *
 * @module
 */

import {
  type Block,
  type Kernel,
  kernelImage,
  type MoonBright,
  type PagedRange,
  readReport,
  REPORT_NONE,
  viewArguments,
} from "@moonbright/moonbright";
import { WrongDataError } from "./token_bytes.ts";

/** Gathered at a time. Small, since it counts as memory that the cache takes. */
const STAGING_BYTES = 1024 ** 2;

/** Any grid is right; this one keeps a GPU busy enough. */
const GEOMETRY = { grid: [64], block: [256] } as const;

/** Reads ranges with a kernel. */
export class PagedReader {
  readonly #gather: Kernel;
  readonly #staging: Block;
  readonly #report: Block;

  /** A reader for the ranges of any space of the instance. */
  constructor(mb: MoonBright) {
    const image = kernelImage("paging_copy", mb.device);
    this.#gather = mb.loadModule(image).kernel("mb_gather");
    this.#staging = mb.alloc(STAGING_BYTES, { name: "kv cache: staging" });
    this.#report = mb.alloc(8, { name: "kv cache: report" });
  }

  /**
   * The first bytes of a range.
   *
   * @throws {WrongDataError} if the table does not allow reading them
   */
  read(range: PagedRange, bytes: number): Uint8Array {
    const result = new Uint8Array(bytes);
    this.#report.write(new BigUint64Array([REPORT_NONE]));
    for (let offset = 0; offset < bytes; offset += STAGING_BYTES) {
      const part = result.subarray(offset, offset + STAGING_BYTES);
      this.#gather.launch(GEOMETRY, [
        ...viewArguments(range.view),
        { u64: offset },
        { u64: part.length },
        this.#staging,
        this.#report,
      ]);
      this.#staging.read(part);
    }
    const [word] = new BigUint64Array(this.#report.read().buffer);
    const bad = readReport(word!);
    if (bad) {
      throw new WrongDataError(
        `The table's entry of page ${bad.page} of a sequence can't be read: it is ${bad.fault}`,
      );
    }
    return result;
  }
}
