import type { Scenario } from "../scenario.ts";
import { accept } from "./accept.ts";
import { apply } from "./apply.ts";
import { authTiming } from "./auth-timing.ts";
import { cost } from "./cost.ts";
import { endToEnd } from "./end-to-end.ts";
import { growth } from "./growth.ts";
import { lateEvents } from "./late-events.ts";
import { memory } from "./memory.ts";
import { noisyNeighbour } from "./noisy-neighbour.ts";
import { pipelining } from "./pipelining.ts";
import { workers } from "./workers.ts";

/** One question each. To add one: a file beside this one, and a line here. */
export const scenarios: readonly Scenario[] = [
  ...[accept, apply, endToEnd, workers, growth, cost, memory, authTiming, noisyNeighbour, lateEvents, pipelining],
];
