/**
 * All commands. A new one is a file of its own and a row here.
 *
 * @module
 */

import { allocCommand } from "./alloc.ts";
import { benchCommand } from "./bench.ts";
import type { Command } from "./command.ts";
import { completionsCommand } from "./completions.ts";
import { exportCommand } from "./export.ts";
import { helpCommand } from "./help_command.ts";
import { infoCommand } from "./info.ts";
import { mapCommand } from "./map.ts";
import { replayCommand } from "./replay.ts";
import { tableCommand } from "./table_command.ts";
import { topCommand } from "./top.ts";

/** All commands, in the order that the help shows. */
export const COMMANDS: readonly Command[] = [
  infoCommand,
  allocCommand,
  benchCommand,
  replayCommand,
  tableCommand,
  topCommand,
  mapCommand,
  exportCommand,
  completionsCommand(() => COMMANDS),
  helpCommand(() => COMMANDS),
];
