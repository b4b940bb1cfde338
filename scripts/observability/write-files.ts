/** `npm run observability` writes the files of deploy/ that are generated. A test fails if they are out of date. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { generateFiles } from "./generate-files.ts";

const root = join(import.meta.dirname, "../..");

for (const [path, text] of Object.entries(generateFiles())) {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
  console.log(path);
}
