import { readFile } from "node:fs/promises";
import { createPatientReader } from "../auth/read-regular-file.ts";

/** Reads a named pipe as no read of ours does: one thread waits for a writer, for ever. Then ends the process. */
const [path = ""] = process.argv.slice(2);
await createPatientReader((pipe) => readFile(pipe, "utf8"), 50)(path).catch(() => {});
process.exit(0);
