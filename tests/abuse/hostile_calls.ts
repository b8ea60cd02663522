/**
 * Run as a script, in a process that may die of it: calls every function of the shim with
 * random arguments, good, dead and absurd ones mixed, also from other threads at once.
 *
 *     hostile_calls.ts host|FAKE_LIBRARY [--ms N | --calls N] [--seed N] [--json]
 *
 * Buffers are as large as the header demands for the counts passed: what a caller says of
 * its own memory is the one thing that the shim can't check. Every call must return a
 * status of the header, and text with every error; in the end the devices must close and a
 * new one must work. Exits with 1 if not.
 *
 * @module
 */

import { parseArgs } from "@std/cli/parse-args";
import { buildHostKernels } from "../../ffi/build.ts";
import { openLibrary } from "../../ffi/library.ts";
import { Backend, Property, Status, type SYMBOLS } from "../../ffi/symbols.ts";
import { asHipImage } from "../fake/control.ts";
import { Random } from "../model/random.ts";

/** What came of it. */
export interface HostileReport {
  /** Calls made, of all functions. */
  calls: number;
  /** Calls by what they returned. */
  statuses: Record<string, number>;
  /** Functions that never succeeded, or were never refused. */
  onesided: string[];
  /** What must not have happened; empty if nothing did. */
  problems: string[];
}

type Name = keyof typeof SYMBOLS;

/** What an argument stands for: how good ones come about, and which bad ones to try. */
type Kind =
  | "backend"
  | "library"
  | "libraryLength"
  | "ordinal"
  | "device"
  | "stream"
  | "event"
  | "module"
  | "function"
  | "graph"
  | "extents"
  | "extentCount"
  | "size"
  | "extentSize"
  | "address"
  | "mapped"
  | "mappedList"
  | "granule"
  | "granules"
  | "rangeCount"
  | "borrowed"
  | "borrowedBytes"
  | "access"
  | "bytes"
  | "data"
  | "image"
  | "imageBytes"
  | "name"
  | "nameLength"
  | "flag"
  | "value"
  | "width"
  | "small"
  | "args"
  | "argsBytes"
  | "capacity"
  | "out"
  | "optionalOut"
  | "samples";

/** The parameters of every function, in order. */
const PARAMETERS: Record<Name, readonly Kind[]> = {
  mb_abi_version: [],
  mb_error_text: ["optionalOut", "capacity"],
  mb_driver_code: [],
  mb_device_count: ["backend", "library", "libraryLength", "out"],
  mb_device_properties: [
    "backend",
    "library",
    "libraryLength",
    "ordinal",
    "out",
    "out",
    "capacity",
  ],
  mb_open: ["backend", "library", "libraryLength", "ordinal", "out"],
  mb_close: ["device"],
  mb_memory_info: ["device", "out"],
  mb_synchronize: ["device"],
  mb_synchronize_async: ["device"],
  mb_reserve: ["device", "size", "out"],
  mb_unreserve: ["device", "address"],
  mb_extents_create: ["device", "extentCount", "granules", "out"],
  mb_extents_release: ["device", "extentCount", "extents"],
  mb_map: [
    "device",
    "address",
    "extentCount",
    "extents",
    "access",
    "optionalOut",
  ],
  mb_set_access: ["device", "mapped", "granule", "access"],
  mb_unmap: ["device", "rangeCount", "mappedList", "granules"],
  mb_stream_create: ["device", "out"],
  mb_stream_destroy: ["device", "stream"],
  mb_stream_synchronize: ["device", "stream"],
  mb_stream_synchronize_async: ["device", "stream"],
  mb_stream_handle: ["device", "stream", "out"],
  mb_stream_wait: ["device", "stream", "event"],
  mb_event_create: ["device", "flag", "out"],
  mb_event_destroy: ["device", "event"],
  mb_event_record: ["device", "event", "stream"],
  mb_event_query: ["device", "event"],
  mb_event_synchronize: ["device", "event"],
  mb_event_synchronize_async: ["device", "event"],
  mb_event_elapsed: ["device", "event", "event", "out"],
  mb_memset: ["device", "address", "value", "width", "bytes", "stream"],
  mb_copy_in: ["device", "address", "data", "bytes", "stream"],
  mb_copy_in_async: ["device", "address", "data", "bytes", "stream"],
  mb_copy_out: ["device", "out", "address", "bytes", "stream"],
  mb_copy_out_async: ["device", "out", "address", "bytes", "stream"],
  mb_copy: ["device", "address", "address", "bytes", "stream"],
  mb_module_load: ["device", "image", "imageBytes", "out"],
  mb_module_unload: ["device", "module"],
  mb_function: ["device", "module", "name", "nameLength", "out"],
  mb_launch: [
    "device",
    "function",
    ...["small", "small", "small", "small", "small", "small"] as const,
    "small",
    "stream",
    "args",
    "argsBytes",
  ],
  mb_host_alloc: ["device", "bytes", "out"],
  mb_host_free: ["device", "address"],
  mb_host_write: ["device", "address", "data", "bytes"],
  mb_host_read: ["device", "out", "address", "bytes"],
  mb_wrap: ["device", "borrowed", "borrowedBytes"],
  mb_unwrap: ["device", "borrowed"],
  mb_capture_begin: ["device", "stream"],
  mb_capture_end: ["device", "stream", "out"],
  mb_capture_status: ["device", "stream", "out"],
  mb_graph_launch: ["device", "graph", "stream"],
  mb_graph_destroy: ["device", "graph"],
  mb_plain_alloc: ["device", "size", "out"],
  mb_plain_free: ["device", "address"],
  mb_pool_alloc: ["device", "size", "stream", "out"],
  mb_pool_free: ["device", "address", "stream"],
  mb_pool_trim: ["device"],
  mb_time_plain: ["device", "size", "samples", "out", "out"],
  mb_time_pool: ["device", "size", "stream", "flag", "samples", "out", "out"],
  mb_time_vmm: ["device", "size", "extentSize", "samples", "out"],
  mb_time_launch: [
    "device",
    "function",
    "stream",
    "args",
    "argsBytes",
    "flag",
    "samples",
    "out",
  ],
  mb_time_launch_async: [
    "device",
    "function",
    "stream",
    "args",
    "argsBytes",
    "flag",
    "samples",
    "out",
  ],
};

const GRANULE = 2 * 1024 ** 2;
/** More than any count or any mapped range here has in bytes. */
const BUFFER_BYTES = 10 * 1024 ** 2;
const BORROWED_BYTES = 1024 ** 2;
/** Devices, and things of each kind, that are kept to be used as good arguments. */
const MOST_KEPT = 24;
const MOST_OPEN = 3;
/** Calls on other threads that are awaited together. */
const MOST_FLYING = 24;

const HOSTILE_WORDS = [0, 1, 2, 3, 7, 0x7fffffff, 0x80000000, 0xffffffff];
/** Sizes among these are below the buffers' or more than any machine has. */
const HOSTILE_NUMBERS = [
  0,
  -0,
  -1,
  0.5,
  1,
  511,
  NaN,
  Infinity,
  -Infinity,
  2 ** 45,
  2 ** 47,
  2 ** 53 - 1,
  2 ** 53,
  2 ** 64,
  Number.MAX_VALUE,
  Number.MIN_VALUE,
];

/** Lists of what calls have made. */
interface Made {
  streams: number[];
  events: number[];
  modules: number[];
  functions: number[];
  graphs: number[];
  extents: number[];
  addresses: number[];
}

/** What there is of a device. */
interface Kept extends Made {
  /** Where extents of one granule are mapped. */
  mapped: number[];
  /** Streams that are capturing. */
  capturing: Set<number>;
}

const LISTS: Partial<Record<Kind, keyof Made>> = {
  stream: "streams",
  event: "events",
  module: "modules",
  function: "functions",
  graph: "graphs",
};

/** Where the result of a call is kept, if it makes something. */
const MAKES: Partial<Record<Name, { list: keyof Made; number: boolean }>> = {
  mb_stream_create: { list: "streams", number: false },
  mb_event_create: { list: "events", number: false },
  mb_module_load: { list: "modules", number: false },
  mb_function: { list: "functions", number: false },
  mb_capture_end: { list: "graphs", number: false },
  mb_extents_create: { list: "extents", number: false },
  mb_reserve: { list: "addresses", number: true },
  mb_plain_alloc: { list: "addresses", number: true },
  mb_pool_alloc: { list: "addresses", number: true },
  mb_host_alloc: { list: "addresses", number: true },
};

/**
 * Functions that take memory away, or rights to it. That no work uses it is for the caller
 * to see to: a fault ends the process on the host, as it loses the context of a GPU.
 */
const TAKING: readonly Name[] = [
  "mb_set_access",
  "mb_unmap",
  "mb_plain_free",
  "mb_pool_free",
  "mb_pool_trim",
  "mb_host_free",
];

/** Functions whose work a graph would do again, when the memory may be gone. */
const CAPTURED: readonly Name[] = ["mb_memset", "mb_copy"];

/** Functions that return no status. */
const PLAIN: readonly Name[] = [
  "mb_abi_version",
  "mb_error_text",
  "mb_driver_code",
];

type Argument = number | ArrayBufferView<ArrayBuffer> | null;

/** The functions, whatever they are passed. */
type Callable = Record<
  Name,
  (...args: Argument[]) => number | Promise<number>
>;

class Hostility {
  readonly report: HostileReport = {
    calls: 0,
    statuses: {},
    onesided: [],
    problems: [],
  };
  readonly #random: Random;
  readonly #symbols: Callable;
  readonly #backend: number;
  readonly #library: Uint8Array<ArrayBuffer>;
  readonly #images: Uint8Array<ArrayBuffer>[];
  readonly #data = new Uint8Array(BUFFER_BYTES);
  readonly #out = new Uint8Array(BUFFER_BYTES);
  /** Memory that is not the shim's, and its address. */
  readonly #lender = new Uint8Array(BORROWED_BYTES);
  readonly #borrowed = Number(
    Deno.UnsafePointer.value(Deno.UnsafePointer.of(this.#lender)),
  );
  readonly #devices = new Map<number, Kept>();
  readonly #succeeded = new Set<Name>();
  readonly #refused = new Set<Name>();
  readonly #lent = new Set<Argument[]>();
  #flying: Promise<void>[] = [];

  constructor(
    symbols: unknown,
    seed: number,
    backend: number,
    library: string,
    images: Uint8Array<ArrayBuffer>[],
  ) {
    this.#symbols = symbols as Callable;
    this.#random = new Random(seed);
    this.#backend = backend;
    this.#library = new TextEncoder().encode(library);
    this.#images = images;
    const words = new Uint32Array(this.#data.buffer);
    for (let at = 0; at < words.length; at++) {
      words[at] = this.#random.below(2 ** 32);
    }
  }

  /** Makes one call. */
  async call(): Promise<void> {
    const names = Object.keys(PARAMETERS) as Name[];
    let name = this.#pick(names)!;
    // Without a device nothing goes far.
    if (this.#devices.size === 0 && this.#random.below(4) > 0) name = "mb_open";
    // What is closed takes a lot with it.
    if (name === "mb_close" && this.#random.below(20) > 0) return;
    if (name === "mb_open" && this.#devices.size >= MOST_OPEN) return;
    const device = this.#pick([...this.#devices.keys()]);
    const args = this.#arguments(name, device);
    const kept = this.#devices.get(args[0] as number);
    if (TAKING.includes(name)) {
      await this.land(true);
      if (kept && this.#symbols.mb_synchronize(args[0]!) !== Status.OK) return;
    }
    if (CAPTURED.includes(name) && kept?.capturing.has(args.at(-1) as number)) {
      return;
    }
    this.report.calls++;
    const result = this.#symbols[name](...args);
    if (typeof result === "number") return this.#returned(name, args, result);
    // What other threads use must not be garbage-collected meanwhile.
    this.#lent.add(args);
    const landed = result.then((status) => {
      this.#lent.delete(args);
      this.#note(name, status);
    });
    this.#flying.push(landed);
  }

  /** Awaits the calls on other threads, if there are many or all are wanted. */
  async land(all: boolean): Promise<void> {
    if (!all && this.#flying.length < MOST_FLYING) return;
    await Promise.all(this.#flying);
    this.#flying = [];
  }

  /** Closes all, and proves that a new device works. */
  finish(): void {
    for (const device of this.#devices.keys()) {
      const status = this.#symbols.mb_close(device);
      if (status !== Status.OK) this.#problem(`mb_close returned ${status}`);
    }
    this.#devices.clear();
    // Held until here: devices have used it.
    this.#lender.fill(0);
    this.#proveDevice();
    const names = (Object.keys(PARAMETERS) as Name[])
      .filter((name) => !PLAIN.includes(name));
    for (const name of names) {
      if (!this.#succeeded.has(name)) {
        this.report.onesided.push(`${name} never succeeded`);
      }
      if (!this.#refused.has(name)) {
        this.report.onesided.push(`${name} was never refused`);
      }
    }
  }

  #returned(name: Name, args: Argument[], result: number): void {
    if (PLAIN.includes(name)) {
      if (name === "mb_error_text" && (result < 0 || result > 4096)) {
        this.#problem(`${name} returned ${result}`);
      }
      return;
    }
    this.#note(name, result);
    const failed = result !== Status.OK && result !== Status.NOT_READY;
    if (failed && this.#symbols.mb_error_text(null, 0) === 0) {
      this.#problem(`${name} returned ${result} and said nothing`);
    }
    if (result === Status.OK) this.#keep(name, args);
  }

  #note(name: Name, status: number): void {
    const known = Object.entries(Status).find(([, value]) => value === status);
    if (!known) return this.#problem(`${name} returned ${status}`);
    const [text] = known;
    this.report.statuses[text] = (this.report.statuses[text] ?? 0) + 1;
    const good = status === Status.OK || status === Status.NOT_READY;
    (good ? this.#succeeded : this.#refused).add(name);
  }

  /** Keeps what a call has made, to be used by others. */
  #keep(name: Name, args: Argument[]): void {
    const id = new Uint32Array(this.#out.buffer, 0, 1)[0]!;
    if (name === "mb_open") {
      this.#devices.set(id, {
        streams: [0],
        events: [],
        modules: [],
        functions: [],
        graphs: [],
        extents: [],
        addresses: [],
        mapped: [],
        capturing: new Set(),
      });
      return;
    }
    const kept = this.#devices.get(args[0] as number);
    if (name === "mb_close") {
      this.#devices.delete(args[0] as number);
      return;
    }
    if (!kept) return;
    if (name === "mb_capture_begin") kept.capturing.add(args[1] as number);
    if (name === "mb_capture_end" || name === "mb_stream_destroy") {
      kept.capturing.delete(args[1] as number);
    }
    if (name === "mb_map" && args[2] === 1) {
      kept.mapped.push(args[1] as number);
      kept.addresses.push(args[1] as number);
    }
    // A GPU can't reach what was lent here: using it would lose the context.
    if (name === "mb_wrap" && this.#backend === Backend.HOST) {
      kept.addresses.push(args[1] as number);
    }
    const made = MAKES[name];
    if (!made) return;
    const list = kept[made.list];
    if (made.number) list.push(new Float64Array(this.#out.buffer, 0, 1)[0]!);
    else if (made.list === "extents") {
      const count = Math.min(args[1] as number, MOST_KEPT);
      list.push(...new Uint32Array(this.#out.buffer, 0, count));
    } else list.push(id);
    // Old ones go first; some of them are dead by now, which is as good.
    while (list.length > MOST_KEPT) list.shift();
  }

  #arguments(name: Name, device: number | undefined): Argument[] {
    const kept = device === undefined ? undefined : this.#devices.get(device);
    // Mostly good arguments: else hardly a call would get past the first check.
    const spoiled = this.#random.below(3) === 0
      ? this.#random.below(PARAMETERS[name].length || 1)
      : -1;
    const wild = this.#random.below(12) === 0;
    return PARAMETERS[name].map((kind, index) => {
      const bad = index === spoiled || wild && this.#random.below(2) === 0;
      if (kind === "device") {
        return bad ? this.#hostileWord() : device ?? this.#hostileWord();
      }
      return bad ? this.#bad(kind) : this.#good(kind, kept);
    });
  }

  #good(kind: Kind, kept: Kept | undefined): Argument {
    const list = LISTS[kind];
    if (list) return this.#pick(kept?.[list] ?? []) ?? 0;
    switch (kind) {
      case "backend":
        return this.#backend;
      case "library":
        return roomy(this.#library);
      case "libraryLength":
        return this.#library.length;
      case "ordinal":
        return 0;
      case "flag":
        return this.#random.below(2);
      case "extents":
        return this.#words(kept?.extents ?? []);
      case "extentCount":
      case "rangeCount":
        return this.#pick([1, 1, 2, 3])!;
      case "granule":
        return GRANULE;
      case "granules":
        return this.#numbers([GRANULE, GRANULE, GRANULE]);
      case "mapped":
        return this.#pick(kept?.mapped ?? []) ?? 0;
      case "mappedList":
        return this.#numbers(
          [0, 1, 2].map(() => this.#pick(kept?.mapped ?? []) ?? 0),
        );
      case "size":
      case "extentSize":
        return GRANULE * (1 + this.#random.below(2));
      case "address":
        return this.#address(kept);
      case "borrowed":
        return this.#borrowed;
      case "borrowedBytes":
        return BORROWED_BYTES;
      case "access":
        return this.#pick([0, 1, 3])!;
      case "bytes":
        return 1 + this.#random.below(2 * GRANULE);
      case "data":
        return this.#data;
      case "image":
        return this.#image();
      case "imageBytes":
        // The image's own length: set by it.
        return this.#imageBytes;
      case "name":
        return roomy(new TextEncoder().encode("mb_empty"));
      case "nameLength":
        return "mb_empty".length;
      case "value":
        return this.#random.below(256);
      case "width":
        return this.#pick([1, 2, 4])!;
      case "small":
        return 1 + this.#random.below(4);
      case "args":
        return this.#data;
      case "argsBytes":
        return 8;
      case "capacity":
        return 1 + this.#random.below(512);
      case "samples":
        return 1 + this.#random.below(3);
      default:
        return this.#out;
    }
  }

  #bad(kind: Kind): Argument {
    switch (kind) {
      case "library":
      case "name":
      case "data":
      case "args":
      case "granules":
      case "extents":
      case "mappedList":
        return this.#pick([null, this.#data, this.#hostileNumbers()])!;
      case "out":
      case "optionalOut":
        return null;
      case "image":
        return this.#spoiledImage();
      case "imageBytes":
        // Less than there is: more would be the caller's lie.
        return this.#pick([
          this.#random.below(this.#imageBytes + 1),
          ...HOSTILE_NUMBERS.filter((number) => !(number > this.#imageBytes)),
        ])!;
      case "borrowed":
      case "borrowedBytes":
        // What passes is believed: see HOSTILE_NUMBERS for the others.
        return this.#pick([0, -1, 0.5, NaN, Infinity, 2 ** 53, 2 ** 64])!;
      case "samples":
        return this.#pick([0, 10_000_001, 0xffffffff])!;
      case "size":
      case "extentSize":
      case "address":
      case "mapped":
      case "granule":
      case "bytes":
        return this.#hostileNumber();
      case "libraryLength":
      case "nameLength":
        // The buffers are at least as long, or the lengths refused.
        return this.#pick([0, 1, 5, 0xffffffff, 1 << 20])!;
      case "capacity":
        return this.#pick([0, 1, 2, 3, 4096, BUFFER_BYTES])!;
      case "extentCount":
      case "rangeCount":
        return this.#pick([0, 1, 1000, 0xfffff, 0x100000, 0xffffffff])!;
      case "backend":
      case "access":
      case "flag":
        // Signed in the header; Deno takes no other for them.
        return this.#hostileWord() | 0;
      default:
        return this.#hostileWord();
    }
  }

  #imageBytes = 0;

  #image(): Uint8Array<ArrayBuffer> {
    const image = this.#pick(this.#images)!;
    this.#imageBytes = image.length;
    return image;
  }

  /**
   * No image, or one of another kind than the device needs. Nothing behind its kind is
   * spoiled: an image is code, and the system's loader believes what it says of itself.
   */
  #spoiledImage(): Uint8Array<ArrayBuffer> | null {
    if (this.#random.below(6) === 0) {
      this.#imageBytes = this.#random.below(1000);
      return this.#random.below(2) === 0 ? null : this.#data;
    }
    const image = this.#pick(this.#images)!.slice();
    this.#imageBytes = image.length;
    // The fake driver loads what it is given as it is; a GPU's own has its own checks.
    if (this.#backend !== Backend.HOST) return null;
    const kindBytes = 24;
    for (let count = 1 + this.#random.below(4); count > 0; count--) {
      const at = this.#random.below(kindBytes);
      image[at] = this.#pick([0, 1, 0x7f, 0xff, this.#random.below(256)])!;
    }
    return image;
  }

  #address(kept: Kept | undefined): number {
    const base = this.#pick(kept?.addresses ?? []) ?? 0;
    return base + this.#pick([0, 0, 0, 0, 0, GRANULE, 512, 1, 8])!;
  }

  #words(values: readonly number[]): Uint32Array<ArrayBuffer> {
    const words = new Uint32Array(BUFFER_BYTES / 8);
    for (let at = 0; at < 4; at++) words[at] = this.#pick(values) ?? 0;
    return words;
  }

  #numbers(values: readonly number[]): Float64Array<ArrayBuffer> {
    const numbers = new Float64Array(BUFFER_BYTES / 8);
    numbers.set(values);
    return numbers;
  }

  #hostileNumbers(): Float64Array<ArrayBuffer> {
    return this.#numbers([0, 1, 2, 3].map(() => this.#hostileNumber()));
  }

  #hostileNumber(): number {
    return this.#random.below(8) === 0
      ? this.#random.below(BUFFER_BYTES)
      : this.#pick(HOSTILE_NUMBERS)!;
  }

  #hostileWord(): number {
    const word = this.#random.below(4) === 0
      ? this.#random.below(2 ** 32)
      : this.#pick(HOSTILE_WORDS)!;
    return word;
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items.length === 0
      ? undefined
      : items[this.#random.below(items.length)];
  }

  #proveDevice(): void {
    const s = this.#symbols;
    const id = new Uint32Array(1);
    const number = new Float64Array(2);
    const check = (status: number | Promise<number>, what: string) => {
      if (status !== Status.OK) {
        this.#problem(`afterwards, ${what} returned ${status}`);
      }
    };
    const { length } = this.#library;
    check(s.mb_open(this.#backend, this.#library, length, 0, id), "mb_open");
    const device = id[0]!;
    check(s.mb_reserve(device, GRANULE, number), "mb_reserve");
    const address = number[0]!;
    const sizes = new Float64Array([GRANULE]);
    check(s.mb_extents_create(device, 1, sizes, id), "mb_extents_create");
    check(s.mb_map(device, address, 1, id, 3, null), "mb_map");
    check(s.mb_memset(device, address, 0x5a, 1, 100, 0), "mb_memset");
    const found = new Uint8Array(101);
    check(s.mb_copy_out(device, found, address, 100, 0), "mb_copy_out");
    if (found.some((byte, at) => byte !== (at < 100 ? 0x5a : 0))) {
      this.#problem("afterwards, a new device does not hold what it is given");
    }
    check(s.mb_close(device), "mb_close");
  }

  #problem(what: string): void {
    if (this.report.problems.length < 20) this.report.problems.push(what);
  }
}

/** Bytes in a buffer that has all that a length passed with it may say. */
function roomy(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const buffer = new Uint8Array(16 * 1024);
  buffer.set(bytes);
  return buffer;
}

if (import.meta.main) {
  const flags = parseArgs(Deno.args, {
    string: ["ms", "calls", "seed"],
    boolean: ["json"],
  });
  const [target = "host"] = flags._.map(String);
  const host = target === "host";
  const seed = Number(flags.seed ?? 1);
  const most = Number(flags.calls ?? Infinity);
  const ms = Number(flags.ms ?? (flags.calls ? Infinity : 5000));
  using library = openLibrary();
  const properties = new Float64Array(Property.COUNT);
  const vendor = new TextEncoder().encode(host ? "" : target);
  const gpu = target.includes("hip") ? Backend.HIP : Backend.CUDA;
  const backend = host ? Backend.HOST : gpu;
  const described = library.symbols.mb_device_properties(
    backend,
    vendor,
    vendor.length,
    0,
    properties,
    new Uint8Array(512),
    512,
  );
  if (described !== Status.OK) throw new Error("Cannot find the device");
  const image = Deno.readFileSync(buildHostKernels("busy"));
  const hostility = new Hostility(
    library.symbols,
    seed,
    backend,
    host ? "" : target,
    [backend === Backend.HIP ? asHipImage(image) : image],
  );
  const end = performance.now() + ms;
  const { report } = hostility;
  while (report.calls < most && performance.now() < end) {
    await hostility.call();
    await hostility.land(false);
  }
  await hostility.land(true);
  hostility.finish();
  if (flags.json) console.log(JSON.stringify(report));
  else {
    console.log(`hostile calls, ${target}, seed ${seed}: ${report.calls}`);
    console.log(report.statuses);
    for (const line of [...report.onesided, ...report.problems]) {
      console.log(`  ${line}`);
    }
  }
  Deno.exit(report.problems.length === 0 ? 0 : 1);
}
