/**
 * Reading the environment, where that is allowed.
 *
 * @module
 */

/** Why {@linkcode readEnv} has no value for a variable. */
export function whyUnset(name: string): string {
  try {
    return Deno.env.get(name) === undefined ? "not set" : "empty";
  } catch (error) {
    if (!(error instanceof Deno.errors.NotCapable)) throw error;
    return `not read, as that needs --allow-env=${name}`;
  }
}

/** A variable's value; undefined if it is unset, empty or may not be read. */
export function readEnv(name: string): string | undefined {
  try {
    return Deno.env.get(name) || undefined;
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) return undefined;
    throw error;
  }
}
