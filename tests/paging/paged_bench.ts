/** Backends that paged spaces are tested on, and what the tests do with them. */

import { assertEquals } from "@std/assert";
import { buildHostKernels } from "../../ffi/build.ts";
import { openDriver } from "../../ffi/devices.ts";
import { kernelImage, type KernelSet } from "../../ffi/kernels.ts";
import { MoonBright, type OpenOptions } from "../../ffi/moonbright.ts";
import type { Block } from "../../lib/block.ts";
import type { CostModel } from "../../lib/cost_model.ts";
import type { DeviceInfo } from "../../lib/driver.ts";
import {
  checksumBlock,
  transferBlock,
} from "../../lib/paging/argument_blocks.ts";
import { decode, type DecodedEntry } from "../../lib/paging/formats.ts";
import { copyGeometry, readGeometry } from "../../lib/paging/launch_sizes.ts";
import { type BadPage, readReport } from "../../lib/paging/page_report.ts";
import type { PagedRange } from "../../lib/paging/paged_range.ts";
import {
  PagedSpace,
  type PagedSpaceOptions,
  type PagedView,
} from "../../lib/paging/paged_space.ts";
import type { PagingImages } from "../../lib/paging/table_writer.ts";
import type { Stream } from "../../lib/stream.ts";
import { buildFakeCuda } from "../fake/build.ts";
import { asCudaImage, FakeCuda } from "../fake/control.ts";

/** A device to test on. */
export interface PagingBackend {
  /** Begins the names of its tests. */
  name: string;
  /** Opens an instance; `seed` chooses the order of work where that is the test's to choose. */
  open(options?: OpenOptions, seed?: number): MoonBright;
  /** Gives an image of MoonBright's kernels. */
  image(set: KernelSet, device: DeviceInfo): Uint8Array;
  /** Checks what a closed instance has left. */
  closed?(): void;
  /** Why it can't be tested here. */
  skip?: string;
}

async function prepare(): Promise<{ fakeCuda: string; skip?: string }> {
  try {
    openDriver({ device: "host" }).close();
    return { fakeCuda: await buildFakeCuda() };
  } catch (error) {
    return { fakeCuda: "", skip: (error as Error).message };
  }
}

const { fakeCuda, skip } = await prepare();

/** Runs kernels in threads of the host. */
export const HOST: PagingBackend = {
  name: "host",
  open: (options) => MoonBright.open({ ...options, device: "host" }),
  image: kernelImage,
  skip,
};

/** Leaves all work undone until it is waited for, and then does it in a random order. */
export const FAKE_CUDA: PagingBackend = {
  name: "fake cuda",
  open(options, seed = 1) {
    using fake = new FakeCuda(fakeCuda);
    fake.seed(seed);
    return MoonBright.open({
      ...options,
      device: "cuda:0",
      vendorLibrary: fakeCuda,
    });
  },
  image: (set) => asCudaImage(Deno.readFileSync(buildHostKernels(set))),
  closed() {
    using fake = new FakeCuda(fakeCuda);
    assertEquals(fake.leftovers(), {});
  },
  skip,
};

/** The first GPU, where one is to be tested. */
export const GPU: PagingBackend = {
  name: "gpu",
  open: (options) => MoonBright.open({ ...options, device: "cuda:0" }),
  image: kernelImage,
  skip: Deno.env.get("MOONBRIGHT_TEST_GPU") === "1"
    ? undefined
    : "MOONBRIGHT_TEST_GPU is not 1",
};

/** All of them. */
export const BACKENDS: readonly PagingBackend[] = [HOST, FAKE_CUDA, GPU];

/** Lets a test of the fake driver make its calls fail. */
export function openFakeControl(): FakeCuda {
  return new FakeCuda(fakeCuda);
}

/** What a kernel has read through a table, once it is done. */
export interface Gathered {
  /** Waits for the device; what was read. */
  bytes(): Uint8Array;
  /** Waits for the device; the lowest page that could not be read or written. */
  badPage(): BadPage | undefined;
}

/** An instance with the kernels that tests use. */
export class PagedBench implements Disposable {
  readonly mb: MoonBright;
  readonly #backend: PagingBackend;
  readonly #functions = new Map<string, number>();
  readonly #modules = new Map<KernelSet, number>();
  /** Kept, so that no memory of theirs is used again. */
  readonly #blocks: Block[] = [];

  constructor(backend: PagingBackend, options: OpenOptions = {}, seed = 1) {
    this.#backend = backend;
    this.mb = backend.open(options, seed);
  }

  /** The kernels of a space. */
  images(): PagingImages {
    const { device } = this.mb;
    return {
      entries: this.#backend.image("paging_entries", device),
      copy: this.#backend.image("paging_copy", device),
    };
  }

  /** Makes a space; of 4 KiB pages, unless told otherwise. */
  space(options: PagedSpaceOptions): PagedSpace {
    return new PagedSpace(this.mb, this.images(), {
      pageSize: 4096,
      ...options,
    });
  }

  /** Opens a second instance of the same device; the test closes it. */
  openAnother(): MoonBright {
    return this.#backend.open();
  }

  /** The driver's id of a kernel. */
  kernel(set: KernelSet, name: string): number {
    const { driver } = this.mb;
    let id = this.#functions.get(name);
    if (id === undefined) {
      let module = this.#modules.get(set);
      if (module === undefined) {
        module = driver.loadModule(this.#backend.image(set, this.mb.device));
        this.#modules.set(set, module);
      }
      id = driver.getFunction(module, name);
      this.#functions.set(name, id);
    }
    return id;
  }

  /** Linear memory for a stream, kept to the end. */
  linear(bytes: number, stream: Stream = this.mb.defaultStream): Block {
    const block = this.mb.alloc(bytes, { stream });
    this.#blocks.push(block);
    return block;
  }

  /** Keeps a stream busy. */
  spin(durationMs: number, stream: Stream): void {
    this.mb.driver.launch(
      this.kernel("busy", "mb_spin"),
      { grid: [1], block: [1] },
      new Uint8Array(
        BigUint64Array.of(BigInt(Math.round(durationMs * 1e6))).buffer,
      ),
      stream.driverId("spin"),
    );
  }

  /** Puts a kernel into a stream that reads a part of a range through the table. */
  gather(
    view: PagedView,
    stream: Stream,
    offset = 0,
    bytes: number = view.pages * 2 ** view.pageShift - offset,
  ): Gathered {
    const block = this.linear(bytes, stream);
    block.fill(0xA4);
    return this.#transfer("mb_gather", view, stream, block, offset, bytes);
  }

  /** Puts a kernel into a stream that writes bytes through the table. */
  scatter(
    view: PagedView,
    stream: Stream,
    source: Uint8Array,
    offset = 0,
  ): Gathered {
    const block = this.linear(source.length, stream);
    block.write(source);
    return this.#transfer(
      "mb_scatter",
      view,
      stream,
      block,
      offset,
      source.length,
    );
  }

  /** A launch of `gather` or `scatter` alone, to be captured; nothing is set up before it. */
  launchTransfer(
    name: "mb_gather" | "mb_scatter",
    view: PagedView,
    stream: Stream,
    linear: number,
    bytes: number,
  ): void {
    const { driver, device } = this.mb;
    driver.launch(
      this.kernel("paging_copy", name),
      copyGeometry(bytes, device.backend),
      transferBlock({ view, offset: 0, bytes, linear }),
      stream.driverId("launch"),
    );
  }

  /** Waits for the device; all entries of a space's table. */
  entries(space: PagedSpace): BigUint64Array {
    this.mb.synchronize();
    const bytes = new Uint8Array(8 * space.pages);
    this.mb.driver.copyOut(bytes, space.table, 0);
    return new BigUint64Array(bytes.buffer);
  }

  /** Waits for the device; what the entries of a range say. */
  decoded(space: PagedSpace, range: PagedRange): DecodedEntry[] {
    const { firstPage, maxPages } = range;
    return Array.from(
      this.entries(space).subarray(firstPage, firstPage + maxPages),
      (entry) => decode(space.format, entry),
    );
  }

  /** Waits for the device; bytes of its memory. */
  memory(address: number | bigint, bytes: number): Uint8Array {
    this.mb.synchronize();
    const found = new Uint8Array(bytes);
    this.mb.driver.copyOut(found, Number(address), 0);
    return found;
  }

  /** The checksum of a space's table, worked out on the device. */
  checksum(space: PagedSpace): bigint {
    const { driver, device } = this.mb;
    this.mb.synchronize();
    const sum = this.linear(8);
    sum.fill(0);
    driver.launch(
      this.kernel("paging_entries", "mb_checksum"),
      readGeometry(8 * space.pages, device.backend, device.processors),
      checksumBlock(space.table, space.pages, sum.address),
      0,
    );
    return new BigUint64Array(sum.read().buffer)[0]!;
  }

  /** Ends a test whose assertions all held. */
  finish(): void {
    if (!this.mb.closed) {
      this.mb.synchronize();
      this.mb.allocator.assertInvariants();
      this.mb.close();
    }
    this.#backend.closed?.();
  }

  [Symbol.dispose](): void {
    this.mb.close();
  }

  #transfer(
    name: "mb_gather" | "mb_scatter",
    view: PagedView,
    stream: Stream,
    block: Block,
    offset: number,
    bytes: number,
  ): Gathered {
    const { driver, device } = this.mb;
    const report = this.linear(8, stream);
    report.fill(0xFF);
    driver.launch(
      this.kernel("paging_copy", name),
      copyGeometry(bytes, device.backend),
      transferBlock({
        view,
        offset,
        bytes,
        linear: block.address,
        report: report.address,
      }),
      stream.driverId("launch"),
    );
    return {
      bytes: () => block.read(),
      badPage: () => readReport(new BigUint64Array(report.read().buffer)[0]!),
    };
  }
}

/** Registers a test on every backend. */
export function testOnAll(
  name: string,
  check: (bench: PagedBench) => void,
): void {
  for (const backend of BACKENDS) {
    const { skip } = backend;
    Deno.test({
      name: `${backend.name}: ${name}${skip ? ` (skipped: ${skip})` : ""}`,
      ignore: skip !== undefined,
      fn() {
        using bench = new PagedBench(backend);
        check(bench);
        bench.finish();
      },
    });
  }
}

/** Registers a test on the fake driver, in as many orders of work as there are seeds. */
export function testInManyOrders(
  name: string,
  seeds: number,
  check: (bench: PagedBench) => void,
): void {
  const { skip } = FAKE_CUDA;
  const only = Deno.env.get("MOONBRIGHT_SEED");
  Deno.test({
    name: `fake cuda: ${name}${skip ? ` (skipped: ${skip})` : ""}`,
    ignore: skip !== undefined,
    fn() {
      for (let seed = 1; seed <= seeds; seed++) {
        if (only !== undefined && seed !== Number(only)) continue;
        try {
          using bench = new PagedBench(FAKE_CUDA, { costs: UNMEASURED }, seed);
          check(bench);
          bench.finish();
        } catch (cause) {
          throw new Error(
            `MOONBRIGHT_SEED=${seed} replays this failure: ${
              (cause as Error).message
            }`,
            { cause },
          );
        }
      }
    },
  });
}

/** Where costs are given, none are measured at opening. */
export const UNMEASURED: CostModel = (() => {
  const cost = { perExtentNs: 1, perMiBNs: 0 };
  return { create: cost, map: cost, unmap: cost, release: cost };
})();
