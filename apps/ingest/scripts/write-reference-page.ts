/**
 * Rewrites `reference-page/index.html`. Run it with `npm run json-schema` after changing the contract or the partner guide. A
 * test fails if the file is stale.
 */
import { writeFileSync } from "node:fs";
import { buildCurrentPage } from "./current-page.ts";

writeFileSync(new URL("../reference-page/index.html", import.meta.url), buildCurrentPage());
