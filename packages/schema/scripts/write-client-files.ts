/** Rewrites the client that partners copy. Run it with `npm run json-schema` after a change of the client. */
import { writeFileSync } from "node:fs";
import { buildClientFiles } from "./client-files.ts";

for (const [name, text] of Object.entries(await buildClientFiles())) {
  writeFileSync(new URL(`../../../docs/clients/${name}`, import.meta.url), text);
}
