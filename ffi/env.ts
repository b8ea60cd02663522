/**
 * Reading the environment, where that is allowed.
 *
 * @module
 */

/** A variable's value; undefined if it is unset, empty or may not be read. */
export function readEnv(name: string): string | undefined {
  try {
    return Deno.env.get(name) || undefined;
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) return undefined;
    throw error;
  }
}
