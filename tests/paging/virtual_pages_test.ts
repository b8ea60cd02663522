import { assert, assertEquals } from "@std/assert";
import fc from "fast-check";
import { type PageSpan, VirtualPages } from "../../lib/paging/virtual_pages.ts";

Deno.test("fresh pages come first, cleared ones only where those don't suffice", () => {
  const pages = new VirtualPages(10);
  assertEquals([pages.take(3), pages.take(3)], [0, 3]);
  pages.recycle([{ first: 0, count: 3 }]);
  assertEquals(pages.take(2), 6);
  assertEquals(pages.take(3), 0);
  assertEquals(pages.take(3), -1);
  assertEquals(pages.take(2), 8);
  assertEquals(pages.take(1), -1);
});

Deno.test("retired pages are nobody's until they were drained and cleared", () => {
  const pages = new VirtualPages(4);
  pages.take(4);
  pages.retire(0, 2);
  pages.retire(2, 2);
  assertEquals([pages.retiredPages, pages.take(1)], [4, -1]);
  const spans = pages.drain();
  assertEquals(spans, [{ first: 0, count: 2 }, { first: 2, count: 2 }]);
  assertEquals([pages.retiredPages, pages.take(1)], [0, -1]);
  assertEquals(pages.drain(), []);
  pages.recycle(spans);
  assertEquals(pages.take(4), 0);
});

Deno.test("no page is given out twice, and a stretch is found just if there is one", () => {
  const total = 24;
  const step = fc.tuple(fc.nat(3), fc.nat(1000));
  // Enough to fill the table and clear it several times.
  const many = fc.array(step, { minLength: 80, maxLength: 200 });
  fc.assert(fc.property(many, (steps) => {
    const pages = new VirtualPages(total);
    const free = Array<boolean>(total).fill(true);
    const taken: PageSpan[] = [];
    let retired: PageSpan[] = [];
    for (const [kind, n] of steps) {
      if (kind < 2) {
        const count = 1 + n % 9;
        const first = pages.take(count);
        const stretch = free.map((yes) => yes ? "f" : "-").join("")
          .includes("f".repeat(count));
        assertEquals(first >= 0, stretch);
        if (first < 0) continue;
        for (let page = first; page < first + count; page++) {
          assert(page < total && free[page], `page ${page} is not free`);
          free[page] = false;
        }
        taken.push({ first, count });
      } else if (kind === 2 && taken.length > 0) {
        const [span] = taken.splice(n % taken.length, 1);
        pages.retire(span!.first, span!.count);
        retired.push(span!);
      } else {
        const drained = pages.drain();
        assertEquals(drained, retired);
        pages.recycle(drained);
        for (const { first, count } of retired) {
          free.fill(true, first, first + count);
        }
        retired = [];
      }
      assertEquals(
        pages.retiredPages,
        retired.reduce((sum, { count }) => sum + count, 0),
      );
    }
  }));
});
