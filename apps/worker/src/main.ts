import { exitOnStartError, version } from "@booking-events/runtime";
import { runWorker } from "./run-worker.ts";

if (process.argv.includes("--version")) process.stdout.write(`${version}\n`);
else await runWorker(process.env).catch(exitOnStartError);
