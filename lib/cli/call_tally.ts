import type { CallCount, CallKind, DriverCall } from "../mapper.ts";

/** Driver calls of one kind. */
export interface CallTotal extends CallCount {
  /** Which call. */
  kind: CallKind;
}

/** Adds up driver calls between two moments; give `add` to an instance as its observer. */
export class CallTally {
  #totals = new Map<CallKind, CallTotal>();

  /** Counts a call. */
  readonly add = ({ kind, items, bytes, ns }: DriverCall): void => {
    let total = this.#totals.get(kind);
    if (!total) {
      total = { kind, calls: 0, items: 0, bytes: 0, ns: 0 };
      this.#totals.set(kind, total);
    }
    total.calls++;
    total.items += items;
    total.bytes += bytes;
    total.ns += ns;
  };

  /** The calls since the last time, in the order in which their kinds first came. */
  take(): CallTotal[] {
    const totals = [...this.#totals.values()];
    this.#totals = new Map();
    return totals;
  }
}
