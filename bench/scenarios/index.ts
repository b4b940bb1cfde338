import type { Scenario } from "../scenario.ts";
import { accept } from "./accept.ts";

/** One question each. To add one: a file beside this one, and a line here. */
export const scenarios: readonly Scenario[] = [accept];
