import type { Scenario } from "../scenario.ts";
import { accept } from "./accept.ts";
import { apply } from "./apply.ts";
import { batch } from "./batch.ts";
import { deliver } from "./deliver.ts";
import { endToEnd } from "./end-to-end.ts";
import { growth } from "./growth.ts";
import { resources } from "./resources.ts";

/** To add one: a file beside this one, and an entry here. */
export const scenarios: readonly Scenario[] = [accept, apply, batch, deliver, endToEnd, growth, resources];
