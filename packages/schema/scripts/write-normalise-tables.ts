import { mkdirSync, writeFileSync } from "node:fs";
import { createTables } from "./normalise-tables.ts";

/** Run it by `npm run normalise-tables` after an update of Node or of the CLDR packages. */
const directory = new URL("../src/normalise/tables/", import.meta.url);
mkdirSync(directory, { recursive: true });
for (const [fileName, source] of Object.entries(createTables())) writeFileSync(new URL(fileName, directory), source);
