/**
 * The example's command line.
 *
 * @module
 */

import { parseArgs } from "@std/cli/parse-args";
import { formatSize } from "@moonbright/moonbright";
import type { DecodingOptions } from "./decoding.ts";

/** Thrown when the command line makes no sense. */
export class UsageError extends Error {
  override name = "UsageError";
}

/** What the command line says. */
export interface ExampleOptions extends DecodingOptions {
  /** Device to open. */
  device: string;
  /** Whether to print JSON. */
  json: boolean;
  /** Layers of the model. */
  layers: number;
  /** Key/value heads of a layer. */
  heads: number;
  /** Numbers in a head's key, and in its value. */
  headDim: number;
}

/** Numbers by flag: the value if left out, the least, and what they mean. */
const NUMBERS = {
  "sequences": [24, 1, "sequences that may be live at once"],
  "steps": [300, 1, "tokens to decode"],
  "beams": [4, 1, "beams, or continuations of a prompt"],
  "seed": [1, 0, "what lengths and scores follow from"],
  "max-tokens": [512, 2, "tokens that a sequence may have"],
  "layers": [16, 1, "layers of the model"],
  "heads": [4, 1, "key/value heads of a layer"],
  "head-dim": [64, 1, "numbers in a head's key, and in its value"],
} as const satisfies Record<string, readonly [number, number, string]>;

/** Highest number that a flag takes. */
const MOST = 1e6;

/** A block's addresses are at most this long. */
const MOST_BYTES = 1024 ** 4;

type NumberFlag = keyof typeof NUMBERS;

const NUMBER_FLAGS = Object.keys(NUMBERS) as NumberFlag[];

/** How to use the example. */
export const USAGE = `Usage: deno run -A examples/kv_cache.ts [flags]

Caches keys and values of a decoder in four ways, and compares them.

${
  [
    [
      "--device <device>",
      "host, cuda:0, hip:0, ... (the first GPU, else host)",
    ],
    ...NUMBER_FLAGS.map((flag) => [
      `--${flag} <number>`,
      `${NUMBERS[flag][2]} (${NUMBERS[flag][0]})`,
    ]),
    ["--json", "print JSON"],
    ["--help", "print this"],
  ].map(([flag, meaning]) => `  ${flag!.padEnd(23)} ${meaning}`).join("\n")
}

Exit codes: 0 all was right, 1 a cache held wrong data, 2 wrong usage, 3 no device or
no memory.
`;

/**
 * Reads the command line; `undefined` if it asks for help.
 *
 * @throws {UsageError} if it makes no sense
 */
export function parseOptions(
  args: readonly string[],
): ExampleOptions | undefined {
  const flags = parseArgs(args, {
    string: ["device", ...NUMBER_FLAGS],
    boolean: ["json", "help"],
    unknown: (arg) => {
      throw new UsageError(`Cannot use "${arg}": there is no such flag`);
    },
  });
  if (flags.help) return undefined;
  const number = (flag: NumberFlag): number => {
    const [otherwise, least] = NUMBERS[flag];
    const text = flags[flag];
    if (text === undefined) return otherwise;
    const value = /^\d+$/.test(text) ? Number(text) : NaN;
    if (!(value >= least && value <= MOST)) {
      throw new UsageError(
        `Cannot use --${flag}: "${text}" is not a whole number from ${least} to ${MOST}`,
      );
    }
    return value;
  };
  const options: ExampleOptions = {
    device: flags.device ?? "auto",
    json: flags.json,
    sequences: number("sequences"),
    steps: number("steps"),
    beams: number("beams"),
    seed: number("seed"),
    maxTokens: number("max-tokens"),
    layers: number("layers"),
    heads: number("heads"),
    headDim: number("head-dim"),
  };
  if (options.beams > options.sequences) {
    throw new UsageError(
      `Cannot keep ${options.beams} beams: only ${options.sequences} sequences may be live; give more --sequences`,
    );
  }
  checkTotal(options);
  return options;
}

/** The ways keep addresses for every sequence at its longest. */
function checkTotal(options: ExampleOptions): void {
  const { sequences, maxTokens } = options;
  const bytes = tokenBytesOf(options) * maxTokens * sequences;
  if (bytes > MOST_BYTES) {
    throw new UsageError(
      `Cannot cache ${sequences} sequences of ${maxTokens} tokens: at their longest they take ${
        formatSize(bytes)
      }, more than ${
        formatSize(MOST_BYTES)
      }; give fewer --sequences, fewer --max-tokens or a smaller model`,
    );
  }
}

/** Bytes of a token: a key and a value of 16-bit numbers for each head of each layer. */
export function tokenBytesOf(
  { layers, heads, headDim }: ExampleOptions,
): number {
  return layers * heads * headDim * 2 * 2;
}
