import { exitOnStartError, version } from "@booking-events/runtime";
import { runLookup } from "./run-lookup.ts";

if (process.argv.includes("--version")) process.stdout.write(`${version}\n`);
else await runLookup(process.env).catch(exitOnStartError);
