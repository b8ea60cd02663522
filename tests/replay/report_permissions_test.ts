import { assertEquals, assertMatch } from "@std/assert";

const root = new URL("../../", import.meta.url);

Deno.test("reports need no permission, and let the process end", async () => {
  const at = (path: string) => JSON.stringify(new URL(path, root).href);
  const script = `
    import { htmlReport } from ${at("lib/replay/report/html_report.ts")};
    import { svgReport } from ${at("lib/replay/report/svg_report.ts")};
    import { sampleReport } from ${at("tests/replay/sample_report.ts")};
    const report = sampleReport({ blocks: 300 });
    console.log((await htmlReport(report)).slice(0, 15));
    console.log((await svgReport(report)).slice(0, 5));
  `;
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-prompt", "--no-check", "-"],
    cwd: root,
    env: { NO_COLOR: "1" },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(script));
  await writer.close();
  const { success, stdout, stderr } = await child.output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  assertEquals([success, text(stderr)], [true, ""]);
  assertMatch(text(stdout), /^<!DOCTYPE html>\n<svg \n$/);
});
