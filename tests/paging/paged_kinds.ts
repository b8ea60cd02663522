/**
 * The ways in which paged spaces are used at random: by tests for a while, by the soak for
 * as long as one likes.
 *
 * @module
 */

import type { WorldKind } from "../lib/random_walk.ts";
import { PagedWorld, type PagedWorldOptions } from "./paged_world.ts";

const options: PagedWorldOptions[] = [
  {
    name: "few pages and frames",
    pages: 48,
    frames: 24,
    largest: 8,
    streams: 3,
  },
  { name: "one stream", pages: 48, frames: 24, largest: 8, streams: 0 },
  {
    name: "long ranges of single frames",
    pages: 700,
    frames: 400,
    largest: 150,
    streams: 2,
  },
  {
    name: "many streams",
    pages: 96,
    frames: 40,
    largest: 5,
    streams: 7,
  },
  {
    name: "captures",
    pages: 96,
    frames: 48,
    largest: 6,
    streams: 3,
    captures: true,
  },
];

/** All of them. */
export const PAGED_KINDS: readonly WorldKind[] = options.map((options) => ({
  name: `paged: ${options.name}`,
  open: (seed, telling) => new PagedWorld(options, seed, telling),
}));
