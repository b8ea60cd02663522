import {
  assert,
  assertEquals,
  assertLess,
  assertMatch,
  assertNotEquals,
  assertStringIncludes,
} from "@std/assert";
import fc from "fast-check";
import { runExample } from "../examples/kv_cache.ts";
import { decode } from "../examples/kv_cache/decoding.ts";
import { percentile, type Report } from "../examples/kv_cache/report.ts";
import type {
  CachedSequence,
  Way,
} from "../examples/kv_cache/sequence_store.ts";
import { type Token, tokensUpTo } from "../examples/kv_cache/token_tree.ts";

const SMALL = ["--device=host", "--steps=60", "--sequences=8"];

function run(args: string[], ways?: readonly Way[]) {
  let stdout = "";
  let stderr = "";
  const code = runExample(args, {
    print: (text) => stdout += text,
    printError: (text) => stderr += text,
  }, ways);
  return { code, stdout, stderr };
}

Deno.test("the four ways do the same work, and hold what was written", () => {
  const { code, stdout, stderr } = run([
    ...["--device=host", "--steps=100", "--json"],
  ]);
  assertEquals([code, stderr], [0, ""]);
  const report: Report = JSON.parse(stdout);
  assertEquals(report.tokenBytes, 16 * 4 * 64 * 2 * 2);
  const { ways } = report;
  assertEquals(
    ways.map(({ way }) => way),
    ["paged", "growable", "longest", "doubling"],
  );
  const [paged, growable, longest, doubling] = ways;
  for (const way of ways) {
    assertEquals(way.verifiedBytes, paged!.verifiedBytes);
    assertEquals(way.peakLiveBytes, paged!.peakLiveBytes);
    assertLess(way.peakLiveBytes, way.peakMappedBytes);
    assert(way.stepNs.p50 > 0 && way.stepNs.p50 <= way.stepNs.p99);
    assert(way.driverCalls > 0);
    assertEquals(way.launches > 0, way === paged);
  }
  assert(paged!.verifiedBytes > paged!.peakLiveBytes);
  // A block for each sequence, wherever it ends; the page tables share prompts.
  assertEquals(
    longest!.peakMappedBytes,
    report.options.sequences * report.options.maxTokens * report.tokenBytes,
  );
  assertLess(doubling!.peakMappedBytes, longest!.peakMappedBytes);
  assertLess(growable!.peakMappedBytes, longest!.peakMappedBytes);
  assertLess(paged!.peakMappedBytes, doubling!.peakMappedBytes);
});

Deno.test("tokens of any size fit in pages", () => {
  const odd = ["--layers=1", "--heads=3", "--head-dim=37", "--max-tokens=700"];
  for (const seed of [1, 2, 3]) {
    const { code, stderr } = run([...SMALL, ...odd, `--seed=${seed}`]);
    assertEquals([code, stderr], [0, ""]);
  }
});

Deno.test("the report names all ways and what the columns mean", () => {
  const { code, stdout } = run(SMALL);
  assertEquals(code, 0);
  assertMatch(stdout, /60 steps of up to 8 sequences, 4 to a prompt/);
  assertMatch(stdout, /^paged .* (µs|ms) +\d+ +\d+$/m);
  assertMatch(stdout, /^waste +share of the peak/m);
});

type Fault = "none" | "fork shares writes" | "loses a token" | "changes a bit";

/** A cache in the host's memory, with a fault. */
function faultyWay(fault: Fault): Way {
  let appends = 0;
  class Sequence implements CachedSequence {
    constructor(readonly bytes: Uint8Array, public used: number) {}

    append(bytes: Uint8Array): void {
      const lost = ++appends === 50 && fault === "loses a token";
      if (!lost) this.bytes.set(bytes, this.used);
      if (appends === 50 && fault === "changes a bit") {
        this.bytes[this.used + bytes.length - 1]! ^= 1;
      }
      this.used += bytes.length;
    }

    fork(): CachedSequence {
      const shared = fault === "fork shares writes";
      return new Sequence(shared ? this.bytes : this.bytes.slice(), this.used);
    }

    read(): Uint8Array {
      return this.bytes.slice(0, this.used);
    }

    free(): void {}
  }
  return {
    name: fault,
    explanation: fault,
    open(mb, { tokenBytes, maxTokens }) {
      mb.alloc(1);
      return {
        launches: 0,
        start(prompt) {
          const bytes = new Uint8Array(tokenBytes * maxTokens);
          const sequence = new Sequence(bytes, 0);
          sequence.append(prompt);
          return sequence;
        },
      };
    },
  };
}

Deno.test("a cache with wrong data ends the example with exit code 1", () => {
  // Short enough that the token in question is still live when it is read back.
  const args = ["--device=host", "--steps=9", "--max-tokens=100", "--heads=1"];
  assertEquals(run(args, [faultyWay("none")]).code, 0);
  for (
    const fault of [
      "fork shares writes",
      "loses a token",
      "changes a bit",
    ] as const
  ) {
    const { code, stdout, stderr } = run(args, [faultyWay(fault)]);
    assertEquals([code, stdout], [1, ""], fault);
    assertMatch(
      stderr,
      new RegExp(`^The way "${fault}" failed: Token \\d+ of a sequence`),
    );
  }
});

Deno.test("wrong usage and absent devices have exit codes of their own", () => {
  for (
    const [args, message] of [
      [["--steps=0"], 'Cannot use --steps: "0" is not a whole number'],
      [["--beams=2.5"], 'Cannot use --beams: "2.5"'],
      [["--stepz=3"], 'Cannot use "--stepz=3": there is no such flag'],
      [["much"], 'Cannot use "much"'],
      [["--beams=5", "--sequences=4"], "Cannot keep 5 beams"],
      [["--layers=1000000"], "Cannot cache 24 sequences of 512 tokens"],
      [["--device=abacus"], 'Cannot open the device "abacus"'],
    ] as const
  ) {
    const { code, stdout, stderr } = run([...args]);
    assertEquals([code, stdout], [2, ""], args[0]);
    assertStringIncludes(stderr, message);
  }
  assertEquals(run(["--device=host:9"]).code, 3);
  const help = run(["--help"]);
  assertEquals(help.code, 0);
  assertMatch(help.stdout, /--max-tokens <number> +tokens that .* \(512\)/);
});

Deno.test("the work is the same for a seed, and differs between seeds", () => {
  const options = { steps: 40, sequences: 9, beams: 3, maxTokens: 30 };
  const work = (seed: number) =>
    [...decode({ ...options, seed })].map(({ operations }) =>
      operations.map((op) => `${op.kind} ${op.sequence}`).join()
    );
  assertEquals(work(7), work(7));
  assertNotEquals(work(7), work(8));
});

Deno.test("beams are forked and freed at every length", () => {
  const kinds: Record<string, number> = {};
  const options = { steps: 50, sequences: 8, beams: 4, maxTokens: 1000 };
  for (const { operations } of decode({ ...options, seed: 1 })) {
    for (const { kind } of operations) kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  // Prompts alone make three forks a request.
  assert(kinds.fork! > 10 * kinds.start!, JSON.stringify(kinds));
  assert(kinds.free! > 10, JSON.stringify(kinds));
});

Deno.test("sequences stay within their limits, and live tokens are counted once", () => {
  fc.assert(fc.property(
    fc.record({
      steps: fc.integer({ min: 1, max: 40 }),
      sequences: fc.integer({ min: 4, max: 12 }),
      beams: fc.integer({ min: 1, max: 4 }),
      maxTokens: fc.integer({ min: 2, max: 40 }),
      seed: fc.nat(),
    }),
    (options) => {
      const last = new Map<number, Token>();
      for (const { operations, liveTokens } of decode(options)) {
        for (const op of operations) {
          if (op.kind === "free") assert(last.delete(op.sequence));
          else if (op.kind === "append") {
            assertEquals(op.token.parent, last.get(op.sequence));
            last.set(op.sequence, op.token);
          } else {
            assert(!last.has(op.sequence));
            const token = op.kind === "start" ? op.prompt : last.get(op.from)!;
            last.set(op.sequence, token);
          }
          assert(last.size <= options.sequences);
        }
        const tokens = [...last.values()].flatMap(tokensUpTo);
        assert([...last.values()].every((t) => t.length <= options.maxTokens));
        assertEquals(liveTokens, new Set(tokens).size);
      }
    },
  ));
});

Deno.test("percentiles are samples", () => {
  const samples = Array.from({ length: 200 }, (_, i) => 200 - i);
  assertEquals(percentile(samples, 0.5), 100);
  assertEquals(percentile(samples, 0.99), 198);
  assertEquals(percentile([5], 0.99), 5);
});
