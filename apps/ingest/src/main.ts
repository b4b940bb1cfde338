import { exitOnStartError } from "@booking-events/runtime";
import { runIngest } from "./run-ingest.ts";

await runIngest(process.env).catch(exitOnStartError);
