/** Rewrites `json-schema/`: run it after a change to a schema, by `npm run json-schema`. A test fails when it was not. */
import { writeFileSync } from "node:fs";
import { buildJsonSchemas } from "./json-schemas.ts";

for (const [fileName, jsonSchema] of Object.entries(buildJsonSchemas())) {
  writeFileSync(new URL(`../json-schema/${fileName}`, import.meta.url), `${JSON.stringify(jsonSchema, null, 2)}\n`);
}
