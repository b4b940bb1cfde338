import { exitOnStartError, version } from "@booking-events/runtime";
import { runIngest } from "./run-ingest.ts";

if (process.argv.includes("--version")) process.stdout.write(`${version}\n`);
else await runIngest(process.env).catch(exitOnStartError);
