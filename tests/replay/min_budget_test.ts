import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { smallestBudget } from "../../lib/replay/min_budget.ts";

Deno.test("the smallest budget is found in few attempts", async () => {
  await fc.assert(fc.asyncProperty(
    fc.nat(3000),
    fc.nat(2000),
    fc.nat(2000),
    fc.integer({ min: 1, max: 64 }),
    async (least, needMore, knownMore, granularity) => {
      const need = Math.max(
        1,
        Math.ceil((least + needMore) / granularity),
      ) * granularity;
      const known = {
        budget: need + knownMore * granularity,
        run: { completed: true },
      };
      const tried: number[] = [];
      const found = await smallestBudget(
        least,
        known,
        granularity,
        (budget) => {
          tried.push(budget);
          return Promise.resolve({ completed: budget >= need });
        },
      );
      assertEquals(found.budget, need);
      assert(found.run.completed);
      assertEquals(new Set(tried).size, tried.length);
      assert(tried.length <= 26);
      assert(tried.every((budget) => budget < known.budget));
    },
  ));
});

Deno.test("nothing is tried if what is known is the least already", async () => {
  const known = { budget: 4096, run: { completed: true } };
  assertEquals(
    await smallestBudget(4000, known, 4096, () => {
      throw new Error("tried");
    }),
    known,
  );
});
