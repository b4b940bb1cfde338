import { exitOnStartError, version } from "@booking-events/runtime";
import { runWebhooks } from "./run-webhooks.ts";

if (process.argv.includes("--version")) process.stdout.write(`${version}\n`);
else await runWebhooks(process.env).catch(exitOnStartError);
