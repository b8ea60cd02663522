// Runs every check of the project and ends with one line: N passed, N failed.
//
//   deno task test            everything
//   deno task test --suite    only the tests, without format, lint, types, docs, publishing
//
// Each failed check that is no test counts as one failure.

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

interface Check {
  name: string;
  args: string[];
  /** Whether its output ends with Deno's count of tests. */
  tests: boolean;
}

const root = new URL("../", import.meta.url);
const SOURCES = ["cli.ts", "mod.ts", "lib", "ffi", "kernels"];
const GUIDE = ["README.md", ...guidePages()];
const ALL_CODE = [...SOURCES, "tests", "bench", "tools", "examples"];

const suite: Check = {
  name: "tests",
  args: ["test", "-A", "--no-check", "tests/"],
  tests: true,
};

const CHECKS: Check[] = [
  { name: "format", args: ["fmt", "--check"], tests: false },
  { name: "lint", args: ["lint"], tests: false },
  { name: "types", args: ["check", ...ALL_CODE], tests: false },
  {
    name: "documentation tests",
    args: ["test", "-A", "--doc", ...SOURCES, ...GUIDE],
    tests: true,
  },
  suite,
  {
    name: "documentation",
    args: ["doc", "--lint", "mod.ts", "cli.ts"],
    tests: false,
  },
  {
    name: "publishing",
    args: ["publish", "--dry-run", "--allow-dirty"],
    tests: false,
  },
];

/** The pages of the user's guide, whose snippets are run as well. */
function guidePages(): string[] {
  const pages: string[] = [];
  for (const { name } of Deno.readDirSync(new URL("docs/", root))) {
    if (name.endsWith(".md")) pages.push(`docs/${name}`);
  }
  return pages.sort();
}

/** Runs a check, passing its output on; returns what it counted. */
async function run(check: Check): Promise<Counts> {
  console.log(`\n=== ${check.name}: deno ${check.args.join(" ")}`);
  const child = new Deno.Command(Deno.execPath(), {
    args: check.args,
    cwd: root,
    env: { NO_COLOR: "1" },
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  let output = "";
  for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
    output += chunk;
    await Deno.stdout.write(new TextEncoder().encode(chunk));
  }
  const { success } = await child.status;
  const counts = check.tests ? readCounts(output) : noCounts();
  if (check.tests && counts.passed + counts.failed === 0) {
    console.log(`${check.name}: no test ran`);
    counts.failed++;
  }
  // A crash or a failed check has no count of its own.
  if (!success && counts.failed === 0) counts.failed++;
  return counts;
}

/** Adds up the summary lines of `deno test`. */
function readCounts(output: string): Counts {
  const counts = noCounts();
  const summaries = output.matchAll(
    /^(?:ok|FAILED) \| (\d+) passed(?: \(\d+ steps?\))? \| (\d+) failed(?: \(\d+ steps?\))?(?: \| (\d+) ignored)?/gm,
  );
  for (const [, passed, failed, ignored] of summaries) {
    counts.passed += Number(passed);
    counts.failed += Number(failed);
    counts.skipped += Number(ignored ?? 0);
  }
  return counts;
}

function noCounts(): Counts {
  return { passed: 0, failed: 0, skipped: 0 };
}

const total = noCounts();
const broken: string[] = [];
for (const check of Deno.args.includes("--suite") ? [suite] : CHECKS) {
  const counts = await run(check);
  total.passed += counts.passed;
  total.failed += counts.failed;
  total.skipped += counts.skipped;
  if (counts.failed > 0) broken.push(check.name);
}
if (broken.length > 0) console.log(`\nfailed: ${broken.join(", ")}`);
const skipped = total.skipped > 0 ? `, ${total.skipped} skipped` : "";
console.log(`\n${total.passed} passed, ${total.failed} failed${skipped}`);
Deno.exit(total.failed > 0 ? 1 : 0);
