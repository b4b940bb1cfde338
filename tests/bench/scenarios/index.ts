import type { Scenario } from "../scenario.ts";
import { accept } from "./accept.ts";
import { apply } from "./apply.ts";
import { endToEnd } from "./end-to-end.ts";
import { growth, growthOfShort } from "./growth.ts";
import { lateEvents } from "./late-events.ts";
import { memory } from "./memory.ts";
import { pipelining } from "./pipelining.ts";
import { shards } from "./shards.ts";

/** To add one: a file beside this one, and an entry here. */
export const scenarios: readonly Scenario[] = [
  accept,
  apply,
  endToEnd,
  growth,
  growthOfShort,
  lateEvents,
  memory,
  pipelining,
  shards,
];
