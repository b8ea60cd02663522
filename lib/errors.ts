/**
 * Every error that MoonBright throws, apart from wrong arguments (which are plain
 * `TypeError` and `RangeError`).
 *
 * @module
 */

/** What went wrong, for programs. Stable across versions. */
export type ErrorCode =
  | "out-of-memory"
  | "out-of-addresses"
  | "invalid-block"
  | "invalid-handle"
  | "closed"
  | "no-library"
  | "library-mismatch"
  | "no-compiler"
  | "permission"
  | "untrusted"
  | "no-device"
  | "unsupported"
  | "lost"
  | "limit"
  | "not-found"
  | "not-mapped"
  | "cannot-grow"
  | "bad-trace"
  | "canary"
  | "no-answer"
  | "busy"
  | "driver";

/** Base class of MoonBright's errors. */
export class MoonBrightError extends Error {
  /** The name of the class, `MoonBrightError`. */
  override name = "MoonBrightError";
  /** What went wrong, for programs. */
  readonly code: ErrorCode;
  /** The operation that failed, such as `alloc` or `open`. */
  readonly operation: string;

  /** Makes an error of the given code for the given operation. */
  constructor(
    code: ErrorCode,
    operation: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.code = code;
    this.operation = operation;
  }
}

/** A call into the vendor's driver or the shim failed. */
export class DriverError extends MoonBrightError {
  /** The name of the class, `DriverError`. */
  override name = "DriverError";
  /** The vendor's own error code, 0 if the shim itself refused. */
  readonly driverCode: number;

  /** Makes an error from a status of the shim. */
  constructor(
    code: ErrorCode,
    operation: string,
    message: string,
    driverCode = 0,
    options?: ErrorOptions,
  ) {
    super(code, operation, message, options);
    this.driverCode = driverCode;
  }
}

/** What an {@linkcode OutOfMemoryError} knows, in bytes unless said otherwise. */
export interface OutOfMemoryDetails {
  /** Bytes asked for. */
  requested: number;
  /** Bytes in live blocks. */
  live: number;
  /** Bytes free inside mapped extents. */
  free: number;
  /** The largest free piece that could serve without mapping anything. */
  largestFree: number;
  /** Bytes in wholly free extents, which can be stitched together. */
  stitchable: number;
  /** Bytes freed but still in use by work on another stream. */
  pending: number;
  /** Of the pending bytes, those that graphs may use which were not closed yet. */
  captured: number;
  /** Bytes of all extents. */
  mapped: number;
  /** The budget, `Infinity` if there is none. */
  budget: number;
  /** What the driver reports free on the device. */
  deviceFree: number;
  /** The device, such as `cuda:0`. */
  device: string;
}

/** No way was left to serve a request. The allocator's state is as before. */
export class OutOfMemoryError extends MoonBrightError {
  /** The name of the class, `OutOfMemoryError`. */
  override name = "OutOfMemoryError";
  /** What was asked and what there was. */
  readonly details: OutOfMemoryDetails;

  /** Makes an error that carries the figures. */
  constructor(
    operation: string,
    message: string,
    details: OutOfMemoryDetails,
    options?: ErrorOptions,
  ) {
    super("out-of-memory", operation, message, options);
    this.details = details;
  }
}

/** A block was freed twice, or an address is not the start of a live block. */
export class InvalidBlockError extends MoonBrightError {
  /** The name of the class, `InvalidBlockError`. */
  override name = "InvalidBlockError";

  /** Makes an error for an operation on something that is no live block. */
  constructor(operation: string, message: string) {
    super("invalid-block", operation, message);
  }
}

/** What has overwritten the canaries of a block. */
export interface CanaryDamage {
  /** The block's first byte. */
  address: number;
  /** Bytes asked for. */
  size: number;
  /** The block's name, if it has one. */
  name?: string;
  /** The first byte overwritten, counted from the block's first: negative before it. */
  offset: number;
  /** How many bytes of the canaries were overwritten. */
  bytes: number;
  /** The JavaScript stack of its allocation, if stacks are kept. */
  allocatedBy?: string;
}

/** Something wrote beyond the ends of a block. */
export class CanaryError extends MoonBrightError {
  /** The name of the class, `CanaryError`. */
  override name = "CanaryError";
  /** The blocks, and where they were overrun. */
  readonly damage: readonly CanaryDamage[];

  /** Makes an error that names the blocks overrun, one at least. */
  constructor(operation: string, damage: readonly CanaryDamage[]) {
    super(
      "canary",
      operation,
      `Cannot ${operation}: ${damage.map(tellDamage).join("; ")}`,
    );
    this.damage = damage;
  }
}

function tellDamage(damage: CanaryDamage): string {
  const { address, size, name, offset, bytes, allocatedBy } = damage;
  const called = name === undefined ? "" : ` "${name}"`;
  const where = offset < 0
    ? `${-offset} bytes before its start`
    : `${offset - size} bytes behind its end`;
  const by = allocatedBy === undefined ? "" : `, allocated by\n${allocatedBy}`;
  return `the block${called} of ${size} bytes at 0x${
    address.toString(16)
  } was overrun: ${bytes} bytes around it were overwritten, the first ${where}${by}`;
}

/** The instance was closed. */
export class ClosedError extends MoonBrightError {
  /** The name of the class, `ClosedError`. */
  override name = "ClosedError";

  /** Makes an error for an operation on a closed instance. */
  constructor(operation: string, what = "this MoonBright instance") {
    super("closed", operation, `Cannot ${operation}: ${what} is closed`);
  }
}
