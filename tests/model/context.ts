import { ClosedError, DriverError } from "../../lib/errors.ts";
import { CallLog, type DriverMethod } from "./call_log.ts";
import type { CostTable } from "./costs.ts";
import { MemoryFault } from "./mmu.ts";

/** What all calls of a model device share: whether it lives, and the books. */
export class Context {
  /** Counts calls and fails those chosen. */
  readonly calls = new CallLog();
  /** Accesses that went to other memory than their operation meant. */
  readonly hazards: string[] = [];
  /** What calls cost. */
  readonly costs: CostTable;
  /** Simulated time spent in driver calls, in nanoseconds. */
  elapsedNs = 0;
  /** Whether the device was closed. */
  closed = false;
  /** Why the context is lost, if it is. */
  lostReason: string | undefined;

  /** Makes a living context. */
  constructor(costs: CostTable) {
    this.costs = costs;
  }

  /** Begins a call; throws if the device is gone or the call was chosen to fail. */
  enter(method: DriverMethod): void {
    if (this.closed) throw new ClosedError(method, "the model device");
    this.#checkNotLost(method);
    this.elapsedNs += this.costs.callNs;
    try {
      this.calls.note(method);
    } catch (error) {
      if (error instanceof DriverError && error.code === "lost") {
        this.lostReason = error.message;
      }
      throw error;
    }
  }

  /** Lets queued work run; a fault in it loses the context. */
  force<Result>(operation: string, run: () => Result): Result {
    this.#checkNotLost(operation);
    try {
      return run();
    } catch (error) {
      if (!(error instanceof MemoryFault)) throw error;
      this.lostReason = error.message;
      throw this.#lost(operation, error.message);
    }
  }

  #checkNotLost(operation: string): void {
    if (this.lostReason !== undefined) {
      throw this.#lost(operation, this.lostReason);
    }
  }

  #lost(operation: string, reason: string): DriverError {
    return new DriverError(
      "lost",
      operation,
      `Cannot ${operation}: the context is lost: ${reason}`,
    );
  }
}
