import { exitOnStartError } from "@booking-events/runtime";
import { runWorker } from "./run-worker.ts";

await runWorker(process.env).catch(exitOnStartError);
