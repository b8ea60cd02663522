/**
 * A log in device memory that grows where it is: its address never changes, so kernels
 * that hold it need not be told, and nothing is copied.
 *
 *     deno run -A examples/log_buffer.ts [DEVICE]
 *
 * @module
 */

import { type Block, formatSize, MoonBright } from "@moonbright/moonbright";

const MIB = 1024 ** 2;

/** Lines of text, one after another in device memory. */
export class LogBuffer implements Disposable {
  readonly #block: Block;
  #used = 0;

  /** A log of at most `maxSize` bytes; memory is taken as it fills. */
  constructor(mb: MoonBright, maxSize: number) {
    this.#block = mb.alloc(1, { maxSize, name: "log" });
  }

  /** Bytes written. */
  get used(): number {
    return this.#used;
  }

  /** Bytes of device memory behind it. */
  get capacity(): number {
    return this.#block.capacity;
  }

  /** Where it begins, for as long as it lives. */
  get address(): number {
    return this.#block.address;
  }

  /**
   * Adds a line.
   *
   * @throws {MoonBrightError} code `cannot-grow` if the log is full
   */
  append(line: string): void {
    const bytes = new TextEncoder().encode(`${line}\n`);
    // What exceeds the capacity is rounded up to whole extents: few appends get here.
    const needed = this.#used + bytes.length;
    if (needed > this.#block.size) {
      this.#block.resize(Math.max(needed, this.#block.capacity));
    }
    this.#block.write(bytes, { offset: this.#used });
    this.#used = needed;
  }

  /** All lines; empties the log and gives its memory back. */
  drain(): string {
    const bytes = this.#block.read(this.#used);
    this.#used = 0;
    this.#block.resize(1);
    return new TextDecoder().decode(bytes);
  }

  /** Frees the log. */
  [Symbol.dispose](): void {
    this.#block[Symbol.dispose]();
  }
}

if (import.meta.main) {
  using mb = MoonBright.open({ device: Deno.args[0] ?? "auto" });
  using log = new LogBuffer(mb, 1024 * MIB);
  let capacity = 0;
  for (let i = 0; log.used < 8 * MIB; i++) {
    log.append(`${i} ${"x".repeat(4000)}`);
    if (log.capacity === capacity) continue;
    capacity = log.capacity;
    console.log(
      `${formatSize(log.used)} used, ${
        formatSize(capacity)
      } taken, still at 0x${log.address.toString(16)}`,
    );
  }
  const lines = log.drain().split("\n").length - 1;
  console.log(`${lines} lines read back, ${formatSize(log.capacity)} kept`);
}
