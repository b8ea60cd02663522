import { rehearse } from "../../lib/rehearsal.ts";
import { openModel } from "./support.ts";
import { assertEquals } from "@std/assert";

Deno.test("a rehearsal plays every call it needs and leaves nothing behind", () => {
  const { mb, model } = openModel();
  const before = model.live();
  rehearse();
  rehearse();
  assertEquals(model.live(), before);
  assertEquals(mb.stats().ways.stitch.count, 0);
});
