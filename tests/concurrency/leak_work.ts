/**
 * Run as a script by the tests, with garbage collection exposed: loses owners of blocks.
 *
 * @module
 */

import { MoonBright } from "../../lib/moonbright.ts";
import { ModelDriver } from "../model/model_driver.ts";

const { gc } = globalThis as unknown as { gc(): void };

function lose(mb: MoonBright): void {
  mb.alloc(1000);
  mb.alloc(2000, { name: "named" });
  mb.alloc(3000).free();
  mb.alloc(4000, { name: "freed" })[Symbol.dispose]();
  // Owned by its address alone, and freed so.
  mb.free(mb.alloc(5000).address);
  mb.alloc(0);
}

async function collect(): Promise<void> {
  for (let round = 0; round < 5; round++) {
    gc();
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

const reporting = new MoonBright(new ModelDriver(), { reportLeaks: true });
lose(reporting);
// A record of a freed block may serve another by the time its owner is collected.
const kept = reporting.alloc(3000, { name: "kept" });
await collect();
console.log(reporting.stats().liveBlocks, kept.live);

const silent = new MoonBright(new ModelDriver());
lose(silent);
await collect();

const closed = new MoonBright(new ModelDriver(), { reportLeaks: true });
lose(closed);
closed.close();
await collect();
