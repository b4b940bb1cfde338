/**
 * Rewrites `json-schema/`, `openapi.json` and `src/testing/examples.ts`. Run it with `npm run json-schema` after changing
 * a schema, an answer or an example. A test fails if the files are stale.
 */
import { writeFileSync } from "node:fs";
import { buildJsonSchemas } from "./json-schemas.ts";
import { buildOpenApi } from "./openapi.ts";
import { buildExamplesModule } from "./testing-examples.ts";

for (const [fileName, jsonSchema] of Object.entries(buildJsonSchemas())) {
  write(`json-schema/${fileName}`, toJson(jsonSchema));
}
write("openapi.json", toJson(buildOpenApi()));
write("src/testing/examples.ts", buildExamplesModule());

function toJson(content: object): string {
  return `${JSON.stringify(content, null, 2)}\n`;
}

function write(path: string, text: string): void {
  writeFileSync(new URL(`../${path}`, import.meta.url), text);
}
