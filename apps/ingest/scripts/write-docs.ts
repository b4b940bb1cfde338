/**
 * Writes the pages of `/docs` into `docs`. Run it with `npm run json-schema` after changing the contract, the partner guide,
 * a client or a sample. A test fails if a file is stale.
 */
import { writeFileSync } from "node:fs";
import { buildDocs } from "./build-docs.ts";

for (const [name, content] of Object.entries(buildDocs()))
  writeFileSync(new URL(`../docs/${name}`, import.meta.url), content);
