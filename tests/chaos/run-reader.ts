import { keepCopy } from "./keep-copy.ts";

await keepCopy();
