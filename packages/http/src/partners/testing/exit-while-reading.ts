import { readFile } from "node:fs/promises";
import { createReaderWithTimeout } from "../read-regular-file.ts";

/**
 * Reads a named pipe, which blocks a thread forever because there is no writer, and then exits. Ingest's own reads
 * never block like this.
 */
const [path = ""] = process.argv.slice(2);
await createReaderWithTimeout((pipe) => readFile(pipe, "utf8"), 50)(path).catch(() => {});
process.exit(0);
