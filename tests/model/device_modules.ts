import type { LaunchGeometry } from "../../lib/driver.ts";
import { DriverError } from "../../lib/errors.ts";
import { checkGeometry } from "./argument_checks.ts";
import type { Context } from "./context.ts";
import type { DeviceGraphs } from "./device_graphs.ts";
import type { DeviceMemory } from "./device_memory.ts";
import type { DeviceStreams } from "./device_streams.ts";
import { IdTable } from "./id_table.ts";
import { type ModelKernel, standardKernels, stepNs } from "./kernels.ts";

interface LoadedFunction {
  module: number;
  name: string;
}

/** Modules and launches. */
export class DeviceModules {
  /** Modules by id. */
  readonly modules = new IdTable<true>("module");
  /** Kernels by name; every module has them all. */
  readonly kernels = new Map<string, ModelKernel>(
    Object.entries(standardKernels),
  );
  readonly #functions = new IdTable<LoadedFunction>("function");
  readonly #context: Context;
  readonly #memory: DeviceMemory;
  readonly #work: DeviceStreams;
  readonly #graphs: DeviceGraphs;

  /** Makes the calls for a memory, its streams and its graphs. */
  constructor(
    context: Context,
    memory: DeviceMemory,
    work: DeviceStreams,
    graphs: DeviceGraphs,
  ) {
    this.#context = context;
    this.#memory = memory;
    this.#work = work;
    this.#graphs = graphs;
  }

  loadModule(image: Uint8Array): number {
    this.#context.enter("loadModule");
    try {
      JSON.parse(new TextDecoder().decode(image));
    } catch (cause) {
      throw new DriverError(
        "driver",
        "loadModule",
        "Cannot load the module: the image is not JSON",
        0,
        { cause },
      );
    }
    return this.modules.add(true);
  }

  unloadModule(module: number): void {
    this.#context.enter("unloadModule");
    this.#work.captures.refuseAny("unloadModule");
    if (this.#graphs.hold(module)) {
      throw new RangeError(
        `Cannot unloadModule: graphs hold kernels of module ${module}; ` +
          "destroy them first",
      );
    }
    this.modules.remove(module, "unloadModule");
    this.#context.force("unloadModule", () => this.#work.scheduler.runAll());
    this.#functions.removeWhere((one) => one.module === module);
  }

  getFunction(module: number, name: string): number {
    this.#context.enter("getFunction");
    this.modules.get(module, "getFunction");
    if (!this.kernels.has(name)) {
      throw new DriverError(
        "not-found",
        "getFunction",
        `Cannot get the function: there is no kernel "${name}"; register it`,
      );
    }
    return this.#functions.add({ module, name });
  }

  launch(
    func: number,
    geometry: LaunchGeometry,
    args: Uint8Array,
    stream: number,
  ): void {
    this.#context.enter("launch");
    const { name, module } = this.#functions.get(func, "launch");
    const target = this.#work.stream(stream, "launch");
    checkGeometry(geometry);
    if (args.length > 4096) {
      throw new RangeError(
        `Cannot launch: ${args.length} bytes of arguments are more than 4096`,
      );
    }
    const kernel = this.kernels.get(name)!;
    const view = new DataView(args.slice().buffer);
    const durationNs = kernel.durationNs?.(view) ?? stepNs;
    this.#work.enqueue("launch", target, `kernel ${name}`, {
      steps: Math.max(1, Math.ceil(durationNs / stepNs)),
      durationNs,
      module,
      run: () => kernel.run(view, this.#memory.mmu, geometry),
    });
  }

  /** Unloads everything. */
  clear(): void {
    this.modules.clear();
    this.#functions.clear();
  }
}
