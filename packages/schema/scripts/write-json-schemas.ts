/**
 * Rewrites `json-schema/` and `openapi.json`. Run it with `npm run json-schema` after changing a schema or an answer. A
 * test fails if the files are stale.
 */
import { writeFileSync } from "node:fs";
import { buildJsonSchemas } from "./json-schemas.ts";
import { buildOpenApi } from "./openapi.ts";

for (const [fileName, jsonSchema] of Object.entries(buildJsonSchemas())) write(`json-schema/${fileName}`, jsonSchema);
write("openapi.json", buildOpenApi());

function write(path: string, content: object): void {
  writeFileSync(new URL(`../${path}`, import.meta.url), `${JSON.stringify(content, null, 2)}\n`);
}
