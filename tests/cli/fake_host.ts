/**
 * A host for the command line in tests: what is written is kept, the device is a model.
 *
 * @module
 */

import type { BenchEnvironment } from "../../lib/bench/report.ts";
import type { DeviceInfo, Driver } from "../../lib/driver.ts";
import type {
  CliHost,
  CliOpenOptions,
  CliStream,
  Found,
  KernelImageName,
} from "../../lib/cli/host.ts";
import { runCli } from "../../lib/cli/main.ts";
import { MoonBright } from "../../lib/moonbright.ts";
import { modelImage } from "../model/kernels.ts";
import { ModelDriver } from "../model/model_driver.ts";

/** An output that keeps what is written. */
export class KeptStream implements CliStream {
  /** Everything written so far. */
  text = "";
  /** As the test wants it. */
  isTerminal = false;
  /** Columns of the terminal. */
  width = 80;
  /** Lines of the terminal. */
  height = 24;

  write(text: string): void {
    this.text += text;
  }

  columns(): number {
    return this.width;
  }

  rows(): number {
    return this.height;
  }
}

/** A host over model devices. Tests replace the members they are about. */
export class FakeHost implements CliHost {
  version = "1.2.3-test";
  stdout = new KeptStream();
  stderr = new KeptStream();
  noColor = false;
  unicode = true;
  interactive = false;
  /** Called on Ctrl-C, as long as a command listens. */
  interrupt: (() => void) | undefined;
  /** Instances that commands opened. */
  opened: MoonBright[] = [];
  /** What each was opened with. */
  openedWith: CliOpenOptions[] = [];
  /** Makes the device. */
  makeDriver: () => Driver = () => new ModelDriver();
  /** What `probe` finds. */
  found: Found = {
    library: { path: "/cache/libmoonbright.so", origin: "cache" },
    backends: [],
  };
  abiVersion = 7;

  enter(): Promise<void> {
    return Promise.resolve();
  }

  onInterrupt(handler: () => void): () => void {
    this.interrupt = handler;
    return () => this.interrupt = undefined;
  }

  open(options: CliOpenOptions): MoonBright {
    const { device: _, ...rest } = options;
    const driver = this.makeDriver();
    try {
      const mb = new MoonBright(driver, rest);
      this.opened.push(mb);
      this.openedWith.push(options);
      return mb;
    } catch (error) {
      driver.close();
      throw error;
    }
  }

  probe(): Found {
    return this.found;
  }

  cacheFolder(): string | undefined {
    return "/cache";
  }

  kernelImage(_name: KernelImageName, _device: DeviceInfo): Uint8Array {
    return modelImage;
  }

  environment(device: DeviceInfo): BenchEnvironment {
    return { ...this.machine(), device };
  }

  machine(): Omit<BenchEnvironment, "device"> {
    return {
      version: this.version,
      commit: null,
      deno: "0.0.0",
      platform: "test",
      processor: null,
      time: "2000-01-01T00:00:00.000Z",
    };
  }

  /** Runs a command line; returns what came of it. */
  async run(...args: string[]): Promise<Outcome> {
    this.stdout.text = "";
    this.stderr.text = "";
    const code = await runCli(args, this);
    return { code, stdout: this.stdout.text, stderr: this.stderr.text };
  }
}

/** What came of a command line. */
export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}
