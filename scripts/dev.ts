/** `npm run dev`: as `npm start`, but from source, and each app starts again when one of its files changes. */
import { runLocally } from "./run-locally.ts";

await runLocally("source");
