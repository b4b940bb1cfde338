/** `npm start`: runs the whole service on this machine, from the built code. */
import { runLocally } from "./run-locally.ts";

await runLocally("dist");
