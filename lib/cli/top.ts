/**
 * `moonbright top`: what programs that publish their memory are doing.
 *
 * @module
 */

import { MoonBrightError } from "../errors.ts";
import { ask, type Published } from "../live/ask.ts";
import { ratesBetween } from "../live/rates.ts";
import type { Summary } from "../live/summary.ts";
import type { Command } from "./command.ts";
import { type CommandContext, SCHEMA_VERSION } from "./context.ts";
import { ExitCode } from "./exit_codes.ts";
import { InterruptedError } from "./interrupted_error.ts";
import { findPublished, parsePid } from "./published.ts";
import { Screen } from "./screen.ts";
import {
  renderTop,
  renderTopLine,
  topLineHeadings,
  type TopSample,
} from "./top_view.ts";
import { UsageError } from "./usage_error.ts";

/** The command. */
export const topCommand: Command = {
  name: "top",
  summary: "watch programs that publish their memory",
  usage: "[PID]",
  details:
    `A program lets itself be watched, by the same user on the same machine only,
with MoonBright.open({ publish: true }) or mb.publish(). It answers whenever
its event loop turns. On a terminal the view is drawn anew in place until
Ctrl-C; elsewhere each look is a line for each instance, and with --json a line
of JSON. Exit code 7 says that no program publishes or one does not answer.`,
  flags: [
    {
      name: "interval",
      value: "SECONDS",
      summary: "time between two looks",
      default: "1",
    },
    { name: "once", summary: "look once, without rates, and end" },
  ],
  examples: [
    { args: "top", what: "all programs of yours that publish" },
    { args: "top 4711 --once", what: "one program, one look" },
    {
      args: "top 4711 --interval 10 --json",
      what: "a line of JSON every ten seconds",
    },
  ],
  async run(context) {
    const pid = pidOf(context);
    const once = context.flags.on("once");
    const intervalMs = intervalOf(context);
    const watch = new Watch(pid);
    const show = once || context.json || !context.host.stdout.isTerminal
      ? lines(context, once)
      : screen(context);
    using _shown = show;
    try {
      for (;;) {
        show.draw(await context.until(watch.look()));
        if (once) return ExitCode.OK;
        await sleep(context, intervalMs);
      }
    } catch (error) {
      // Ctrl-C is how a view without an end is ended.
      if (error instanceof InterruptedError) return ExitCode.OK;
      if (watch.looks > 0 && isGone(error)) {
        context.host.stderr.write("moonbright: no program is left to watch\n");
        return ExitCode.OK;
      }
      throw error;
    }
  },
};

/** Looks again and again, and knows what there was before. */
class Watch {
  /** Looks so far. */
  looks = 0;
  readonly #pid: number | undefined;
  #before = new Map<string, Summary>();

  constructor(pid: number | undefined) {
    this.#pid = pid;
  }

  async look(): Promise<TopSample[]> {
    const found = await findPublished(this.#pid);
    const answers = await Promise.allSettled(found.map(summaryOf));
    const samples: TopSample[] = [];
    const now = new Map<string, Summary>();
    answers.forEach((answer, index) => {
      if (answer.status === "rejected") return;
      const { path } = found[index]!;
      const summary = answer.value;
      const before = this.#before.get(path);
      now.set(path, summary);
      samples.push({
        summary,
        rates: before && ratesBetween(before, summary),
      });
    });
    const [failed] = answers.filter(({ status }) => status === "rejected");
    // One that is busy must not hide the others.
    if (samples.length === 0) throw (failed as PromiseRejectedResult).reason;
    this.#before = now;
    this.looks++;
    return samples;
  }
}

async function summaryOf(one: Published): Promise<Summary> {
  return await ask(one, "summary") as Summary;
}

/** How looks are shown. */
interface Show extends Disposable {
  draw(samples: readonly TopSample[]): void;
}

function screen(context: CommandContext): Show {
  const { stdout, unicode } = context.host;
  context.progress.clear();
  const screen = new Screen(stdout);
  return {
    draw(samples) {
      const look = {
        columns: stdout.columns(),
        unicode,
        style: context.style,
      };
      screen.draw(samples.map((one) => renderTop(one, look)).join("\n"));
    },
    [Symbol.dispose]: () => screen[Symbol.dispose](),
  };
}

function lines(context: CommandContext, once: boolean): Show {
  const { stdout, unicode } = context.host;
  let headed = false;
  return {
    draw(samples) {
      if (context.json) {
        context.print(`${
          JSON.stringify({
            schemaVersion: SCHEMA_VERSION,
            command: "top",
            instances: samples.map(({ summary, rates }) => ({
              ...summary,
              rates: rates ?? null,
            })),
          })
        }\n`);
        return;
      }
      if (once) {
        const look = {
          columns: stdout.columns(),
          unicode,
          style: context.style,
        };
        context.print(samples.map((one) => renderTop(one, look)).join("\n"));
        return;
      }
      if (!headed) context.print(topLineHeadings());
      headed = true;
      context.print(samples.map(renderTopLine).join(""));
    },
    [Symbol.dispose]() {},
  };
}

function isGone(error: unknown): boolean {
  return error instanceof MoonBrightError && error.code === "no-answer";
}

/** Waits, at most until Ctrl-C. */
async function sleep(context: CommandContext, ms: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    await context.until(
      new Promise<void>((resolve) => timer = setTimeout(resolve, ms)),
    );
  } finally {
    clearTimeout(timer);
  }
}

function pidOf({ flags }: CommandContext): number | undefined {
  const [pid, ...more] = flags.positionals;
  if (more.length > 0) {
    throw new UsageError(
      `Cannot watch ${more.length + 1} processes: name one, or none for all`,
    );
  }
  return pid === undefined ? undefined : parsePid(pid);
}

function intervalOf({ flags }: CommandContext): number {
  const text = flags.text("interval") ?? "1";
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (!(seconds >= 0.05 && seconds <= 86_400)) {
    throw new UsageError(
      `Cannot use --interval: "${text}" is not between 0.05 and 86400 seconds`,
    );
  }
  return seconds * 1000;
}
