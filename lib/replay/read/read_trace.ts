/**
 * Reading recorded workloads, whatever recorded them.
 *
 * @module
 */

import type { Trace } from "../trace.ts";
import { ByteSource } from "./byte_source.ts";
import { foreignFormat, LONGEST_MAGIC } from "./foreign_formats.ts";
import { gunzip, isGzip } from "./gunzip.ts";
import { MAX_GZIP_LAYERS } from "./limits.ts";
import { isJson, readMoonBrightTrace } from "./moonbright_lines.ts";
import { REWRITE } from "./pickle_opcodes.ts";
import { readSnapshot } from "./pytorch_snapshot.ts";
import { isRmmHeader, readRmmLog } from "./rmm_log.ts";
import { TextLines } from "./text_lines.ts";

const EXPECTED =
  "expected a memory snapshot of PyTorch, a log of RMM or a trace of MoonBright, plain or packed with gzip";

const PROTO = 0x80;
/** How dicts and lists begin in protocols 0 and 1, which have no such opcode. */
const OLD_PICKLE = /^(?:\([dl]p\d+\n|[}\]]q[^ -~])/;

/**
 * Reads a recorded workload: one trace for each device that has events. The format shows
 * in the content: a memory snapshot of PyTorch (a pickle of protocol 2 to 5), a log of
 * RMM, or a trace of MoonBright, each plain or packed with gzip. Nothing in a file is
 * executed.
 *
 * @param name the file's name, for errors; RMM's logs have the device's number in it
 * @param data the file's content, which is read to its end or, on an error, cancelled
 * @throws {TraceFormatError} if it is something else, damaged, or has no events; errors
 *   of `data` itself are passed on
 */
export async function readTraces(
  name: string,
  data: ReadableStream<Uint8Array>,
): Promise<Trace[]> {
  let source = new ByteSource(name, data);
  try {
    for (let layer = 0; await isGzip(source); layer++) {
      if (layer === MAX_GZIP_LAYERS) {
        throw source.error(
          `it is packed with gzip more than ${MAX_GZIP_LAYERS} times; unpack it first`,
          {},
        );
      }
      source = new ByteSource(name, gunzip(source));
    }
    return await readUnpacked(source);
  } finally {
    await source.cancel();
  }
}

async function readUnpacked(source: ByteSource): Promise<Trace[]> {
  await source.fill(LONGEST_MAGIC);
  const head = source.bytes.subarray(source.at);
  if (head.length === 0) {
    throw source.error(`it is empty; ${EXPECTED}`, {});
  }
  if (head[0] === PROTO) return readSnapshot(source);
  const foreign = foreignFormat(head);
  if (foreign !== undefined) throw source.error(`${foreign}; ${EXPECTED}`, {});
  if (OLD_PICKLE.test(latin1(head.subarray(0, LONGEST_MAGIC)))) {
    throw source.error(
      `expected a pickle of protocol 2 to 5, got 0 or 1; ${REWRITE}`,
      {},
    );
  }
  if (head.subarray(0, LONGEST_MAGIC).some(isControl)) {
    throw source.error(`it is neither text nor a pickle; ${EXPECTED}`, {});
  }
  return readText(new TextLines(source));
}

async function readText(lines: TextLines): Promise<Trace[]> {
  const first = await lines.next() ?? "";
  if (isJson(first)) return readMoonBrightTrace(first, lines);
  if (isRmmHeader(first)) return readRmmLog(first, lines);
  throw lines.error(
    `it is text, but neither of RMM's columns nor JSON; ${EXPECTED}`,
  );
}

/** Whether a byte occurs in no text: controls other than tab and the ends of lines. */
function isControl(byte: number): boolean {
  return byte < 32 && byte !== 9 && byte !== 10 && byte !== 13;
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}
