/**
 * Finding the smallest budget under which a workload completes.
 *
 * @module
 */

/** A budget that was tried. */
export interface BudgetTrial<T> {
  /** The budget in bytes. */
  budget: number;
  /** The replay under it. */
  run: T;
}

/**
 * The smallest budget, in steps of `granularity`, under which `attempt` completes:
 * `least` bytes and twice as much more each time until it does, then by bisection. At
 * most `known`, which completes. Completing is not strictly monotone in the budget:
 * what is found completes, and one step less does not.
 */
export async function smallestBudget<T extends { completed: boolean }>(
  least: number,
  known: BudgetTrial<T>,
  granularity: number,
  attempt: (budget: number) => Promise<T>,
): Promise<BudgetTrial<T>> {
  let best = known;
  /** In steps of the granularity: the largest that fails. */
  let fails = Math.ceil(least / granularity) - 1;
  const gap = () => best.budget / granularity - fails;
  for (let more = 1; best === known && gap() > 1; more *= 2) {
    await tryOne(Math.min(fails + more, fails + gap() - 1));
  }
  while (gap() > 1) await tryOne(fails + Math.floor(gap() / 2));
  return best;

  async function tryOne(steps: number): Promise<void> {
    const budget = steps * granularity;
    const run = await attempt(budget);
    if (run.completed) best = { budget, run };
    else fails = steps;
  }
}
