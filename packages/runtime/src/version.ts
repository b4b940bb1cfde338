import { readFileSync } from "node:fs";

/** The version of the service, such as "0.1.0". All packages of the repository have the same version. */
export const version: string = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")).version;
