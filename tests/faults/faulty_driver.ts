/**
 * A driver whose calls fail when a test says so, and that keeps books of what it has given
 * out. It stands before any other driver, so that the same faults meet the model device,
 * the host's memory and the fake CUDA driver.
 *
 * @module
 */

import type { AddressRange, Driver } from "../../lib/driver.ts";
import { DriverError, type ErrorCode } from "../../lib/errors.ts";
import type { Random } from "../model/random.ts";

/** A method of the driver that may fail. */
export type FallibleMethod = Exclude<keyof Driver, "info" | "close">;

/** What a driver has given out and not got back. */
export interface Holdings {
  /** Extents created and not released. */
  extents: number;
  /** Bytes mapped and not unmapped. */
  mapped: number;
  /** Reservations not given back. */
  reservations: number;
  /** Streams not destroyed. */
  streams: number;
  /** Events not destroyed. */
  events: number;
  /** Streams that are capturing. */
  captures: number;
  /** Graphs not destroyed. */
  graphs: number;
  /** Modules not unloaded. */
  modules: number;
  /** Page-locked allocations not freed. */
  pinned: number;
}

interface PlannedFault {
  method: FallibleMethod | "any";
  callsLeft: number;
  code: ErrorCode;
  /** Whether the calls behind it fail too. */
  lasting: boolean;
}

/** Chooses which calls fail, and counts. */
export class Faults {
  /** What the driver has given out. */
  readonly holdings: Holdings = {
    extents: 0,
    mapped: 0,
    reservations: 0,
    streams: 0,
    events: 0,
    captures: 0,
    graphs: 0,
    modules: 0,
    pinned: 0,
  };
  /** Calls of each method so far, failed ones too. */
  readonly calls = new Map<FallibleMethod, number>();
  /** Calls that were made to fail. */
  injected = 0;
  #planned: PlannedFault | undefined;
  #chance: { oneIn: number; random: Random } | undefined;
  #lost = false;
  readonly #sizes = new Map<number, number>();

  /**
   * Makes the `kth` call from now on of a method, or of any, fail with `code`; 1 is the
   * next. `lasting`: all its calls behind that one too. After `lost`, every call fails.
   */
  fail(
    method: FallibleMethod | "any",
    kth: number,
    code: ErrorCode,
    lasting = false,
  ): void {
    this.#planned = { method, callsLeft: kth, code, lasting };
  }

  /** Makes one in so many calls fail with the code `driver`, until `clear`. */
  failNowAndThen(oneIn: number, random: Random): void {
    this.#chance = { oneIn, random };
  }

  /** Lets all calls pass again, but on a lost device; returns whether any has failed. */
  clear(): boolean {
    const fired = this.#planned !== undefined && this.#planned.callsLeft <= 0;
    this.#planned = undefined;
    this.#chance = undefined;
    return fired;
  }

  /** Begins a call; throws if it was chosen to fail. */
  enter(method: FallibleMethod): void {
    this.calls.set(method, (this.calls.get(method) ?? 0) + 1);
    if (this.#lost) throw this.#failure(method, "lost");
    if (this.#chance && this.#chance.random.below(this.#chance.oneIn) === 0) {
      throw this.#failure(method, "driver");
    }
    const planned = this.#planned;
    if (!planned) return;
    if (planned.method !== "any" && planned.method !== method) return;
    planned.callsLeft--;
    if (planned.callsLeft > 0 || planned.callsLeft < 0 && !planned.lasting) {
      return;
    }
    if (planned.code === "lost") this.#lost = true;
    throw this.#failure(method, planned.code);
  }

  /** Notes what a call that has succeeded gave out or took back. */
  leave(method: FallibleMethod, args: readonly unknown[], result: unknown) {
    const { holdings } = this;
    switch (method) {
      case "reserve":
        holdings.reservations++;
        break;
      case "unreserve":
        holdings.reservations--;
        break;
      case "createExtents": {
        const sizes = args[0] as readonly number[];
        (result as number[]).forEach((id, at) =>
          this.#sizes.set(id, sizes[at]!)
        );
        holdings.extents += sizes.length;
        break;
      }
      case "releaseExtents":
        holdings.extents -= (args[0] as readonly number[]).length;
        break;
      case "map":
        for (const id of args[1] as readonly number[]) {
          holdings.mapped += this.#sizes.get(id)!;
        }
        break;
      case "unmap":
        for (const { size } of args[0] as readonly AddressRange[]) {
          holdings.mapped -= size;
        }
        break;
      case "createStream":
        holdings.streams++;
        break;
      case "destroyStream":
        holdings.streams--;
        break;
      case "createEvent":
        holdings.events++;
        break;
      case "destroyEvent":
        holdings.events--;
        break;
      case "beginCapture":
        holdings.captures++;
        break;
      case "endCapture":
        holdings.captures--;
        holdings.graphs++;
        break;
      case "destroyGraph":
        holdings.graphs--;
        break;
      case "loadModule":
        holdings.modules++;
        break;
      case "unloadModule":
        holdings.modules--;
        break;
      case "allocPinned":
        holdings.pinned++;
        break;
      case "freePinned":
        holdings.pinned--;
        break;
    }
  }

  #failure(method: FallibleMethod, code: ErrorCode): DriverError {
    this.injected++;
    return new DriverError(
      code,
      method,
      `Cannot ${method}: the driver was told to fail here`,
    );
  }
}

/** A driver whose calls fail as `faults` says; all else is the given driver's. */
export function faulty<D extends Driver>(driver: D, faults: Faults): D {
  return new Proxy(driver, {
    get(target, name) {
      const member = Reflect.get(target, name, target);
      if (typeof member !== "function" || name === "close") {
        return typeof member === "function" ? member.bind(target) : member;
      }
      const method = name as FallibleMethod;
      return (...args: unknown[]) => {
        faults.enter(method);
        const result = member.apply(target, args);
        faults.leave(method, args, result);
        return result;
      };
    },
  });
}
