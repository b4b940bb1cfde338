import { exitOnStartError } from "@booking-events/service";
import { runIngest } from "./run-ingest.ts";

await runIngest(process.env).catch(exitOnStartError);
