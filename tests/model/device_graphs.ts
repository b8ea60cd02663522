import type { CapturedWork } from "./captures.ts";
import type { Context } from "./context.ts";
import type { DeviceStreams } from "./device_streams.ts";
import { IdTable } from "./id_table.ts";
import { hasPassed, type Place } from "./scheduler.ts";

interface GraphState {
  works: readonly CapturedWork[];
  /** The end of its last launch. */
  last?: Place;
}

/** The calls on captures and graphs. */
export class DeviceGraphs {
  /** Graphs by id. */
  readonly graphs = new IdTable<GraphState>("graph");
  readonly #context: Context;
  readonly #work: DeviceStreams;

  /** Makes the calls for streams. */
  constructor(context: Context, work: DeviceStreams) {
    this.#context = context;
    this.#work = work;
  }

  beginCapture(stream: number): void {
    this.#context.enter("beginCapture");
    if (stream === 0) {
      throw new RangeError(
        "Cannot beginCapture: the default stream can't capture; create a " +
          "stream for it",
      );
    }
    const target = this.#work.stream(stream, "beginCapture");
    if (this.#work.captures.has(target)) {
      throw new RangeError(
        `Cannot beginCapture: stream ${stream} is capturing already`,
      );
    }
    this.#work.captures.begin(target);
  }

  endCapture(stream: number): number {
    this.#context.enter("endCapture");
    const target = this.#work.stream(stream, "endCapture");
    const works = this.#work.captures.end(target);
    if (works) return this.graphs.add({ works });
    throw new RangeError(
      `Cannot endCapture: stream ${stream} is not capturing`,
    );
  }

  isCapturing(stream: number): boolean {
    this.#context.enter("isCapturing");
    return this.#work.captures.has(this.#work.stream(stream, "isCapturing"));
  }

  launchGraph(graph: number, stream: number): void {
    this.#context.enter("launchGraph");
    const state = this.graphs.get(graph, "launchGraph");
    const target = this.#work.stream(stream, "launchGraph");
    this.#work.captures.refuse("launchGraph", target);
    if (state.last && !hasPassed(state.last)) {
      this.#work.enqueue("launchGraph", target, `graph ${graph} in turn`, {
        after: state.last,
        run: () => {},
      });
    }
    for (const { label, work } of state.works) {
      this.#work.enqueue("launchGraph", target, label, work);
    }
    state.last = target.tail;
  }

  destroyGraph(graph: number): void {
    this.#context.enter("destroyGraph");
    this.graphs.remove(graph, "destroyGraph");
  }

  /** Whether a graph holds a kernel of the module. */
  hold(module: number): boolean {
    return this.graphs.some(({ works }) =>
      works.some(({ work }) => work.module === module)
    );
  }
}
