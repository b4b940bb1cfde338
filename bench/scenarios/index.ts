import type { Scenario } from "../scenario.ts";
import { accept } from "./accept.ts";
import { apply } from "./apply.ts";
import { authTiming } from "./auth-timing.ts";
import { noisyNeighbour } from "./noisy-neighbour.ts";

/** One question each. To add one: a file beside this one, and a line here. */
export const scenarios: readonly Scenario[] = [accept, apply, authTiming, noisyNeighbour];
