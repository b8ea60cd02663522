/**
 * The report word of checked accesses: a kernel leaves the lowest page in it that could not
 * be accessed.
 *
 * @module
 */

/** The word of a report with nothing to say; all bytes 0xFF. */
export const REPORT_NONE: bigint = 2n ** 64n - 1n;

/** What is wrong with a page. */
export type PageFault = "invalid" | "read-only" | "out-of-range";

/** A page that could not be accessed. */
export interface BadPage {
  /** Number of the page within the range. */
  page: number;
  /** What is wrong with it. */
  fault: PageFault;
}

/** As `MB_PAGE_*` in `kernels/moonbright.h`. */
const FAULTS: Record<number, PageFault> = {
  1: "invalid",
  2: "read-only",
  3: "out-of-range",
};

/**
 * Reads a report word; undefined if every access was allowed.
 *
 * @throws {RangeError} if no kernel can have written the word
 */
export function readReport(word: bigint): BadPage | undefined {
  if (word === REPORT_NONE) return undefined;
  const fault = FAULTS[Number(word & 0xFFn)];
  if (fault === undefined) {
    throw new RangeError(
      `Cannot read a page report: 0x${
        word.toString(16)
      } is none; was the word set to all ones before the launch?`,
    );
  }
  return { page: Number(word >> 8n), fault };
}
