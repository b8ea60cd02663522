import { DriverError } from "../../lib/errors.ts";

/** Things of one kind by id. Ids start at 1 and are never given twice. */
export class IdTable<Thing> {
  readonly #things = new Map<number, Thing>();
  readonly #kind: string;
  #nextId = 1;

  /** Makes an empty table; `kind` names its things in messages. */
  constructor(kind: string) {
    this.#kind = kind;
  }

  /** How many things there are. */
  get count(): number {
    return this.#things.size;
  }

  /** Adds a thing; returns its id. */
  add(thing: Thing): number {
    const id = this.#nextId++;
    this.#things.set(id, thing);
    return id;
  }

  /** The thing of that id; throws when there is none. */
  get(id: number, operation: string): Thing {
    const thing = this.#things.get(id);
    if (thing === undefined) throw unknownId(this.#kind, id, operation);
    return thing;
  }

  /** Takes a thing out; throws when there is none. */
  remove(id: number, operation: string): Thing {
    const thing = this.get(id, operation);
    this.#things.delete(id);
    return thing;
  }

  /** Whether the condition holds for any thing. */
  some(condition: (thing: Thing) => boolean): boolean {
    return [...this.#things.values()].some(condition);
  }

  /** Takes everything out. */
  clear(): void {
    this.#things.clear();
  }

  /** Takes out every thing that the condition holds for. */
  removeWhere(condition: (thing: Thing) => boolean): void {
    for (const [id, thing] of this.#things) {
      if (condition(thing)) this.#things.delete(id);
    }
  }
}

/** The error for an id that names nothing. */
export function unknownId(
  kind: string,
  id: number,
  operation: string,
): DriverError {
  return new DriverError(
    "invalid-handle",
    operation,
    `Cannot ${operation}: there is no ${kind} ${id}`,
  );
}
