/**
 * Rewrites `json-schema/`. Run it with `npm run json-schema` after changing a schema; a test fails if the files are
 * stale.
 */
import { writeFileSync } from "node:fs";
import { buildJsonSchemas } from "./json-schemas.ts";

for (const [fileName, jsonSchema] of Object.entries(buildJsonSchemas())) {
  writeFileSync(new URL(`../json-schema/${fileName}`, import.meta.url), `${JSON.stringify(jsonSchema, null, 2)}\n`);
}
