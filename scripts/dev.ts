/** `npm run dev`: like `npm start`, but from source. Each app restarts when one of its files changes. */
import { runLocally } from "./run-locally.ts";

await runLocally("source");
