import { exitOnStartError } from "@booking-events/service";
import { runWorker } from "./run-worker.ts";

await runWorker(process.env).catch(exitOnStartError);
