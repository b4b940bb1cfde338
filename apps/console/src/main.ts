import { exitOnStartError, version } from "@booking-events/runtime";
import { runConsole } from "./run-console.ts";

if (process.argv.includes("--version")) process.stdout.write(`${version}\n`);
else await runConsole(process.env).catch(exitOnStartError);
