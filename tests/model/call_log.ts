import type { Driver } from "../../lib/driver.ts";
import { DriverError, type ErrorCode } from "../../lib/errors.ts";

/** A method of the driver. */
export type DriverMethod = Exclude<keyof Driver, "info">;

interface PlannedFailure {
  method: DriverMethod | "any";
  callsLeft: number;
  code: ErrorCode;
}

/** Counts the calls of a driver and makes chosen ones fail. */
export class CallLog {
  /** Calls of each method so far, failed ones too. */
  readonly counts: Partial<Record<DriverMethod, number>> = {};
  #failures: PlannedFailure[] = [];

  /** Makes the k-th call from now on fail; 1 is the next. */
  failNext(method: DriverMethod | "any", kth: number, code: ErrorCode): void {
    this.#failures.push({ method, callsLeft: kth, code });
  }

  /** Forgets the failures that have not come yet. */
  clearFailures(): void {
    this.#failures = [];
  }

  /** How many planned failures have not come yet. */
  get failuresLeft(): number {
    return this.#failures.length;
  }

  /** Notes a call; throws if it was chosen to fail. */
  note(method: DriverMethod): void {
    this.counts[method] = (this.counts[method] ?? 0) + 1;
    let failing: PlannedFailure | undefined;
    for (const failure of this.#failures) {
      if (failure.method !== "any" && failure.method !== method) continue;
      failure.callsLeft--;
      if (failure.callsLeft === 0) failing = failure;
    }
    if (!failing) return;
    this.#failures = this.#failures.filter((one) => one.callsLeft > 0);
    throw new DriverError(
      failing.code,
      method,
      `Cannot ${method}: the model device was told to fail here`,
    );
  }
}
