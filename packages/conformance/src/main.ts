#!/usr/bin/env node
import { runProgram } from "./program.ts";

const stopping = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  // A second one ends the process at once.
  process.once(signal, () => stopping.abort());
}

const { stdout, stderr } = process;
process.exitCode = await runProgram(process.argv.slice(2), { stdout, stderr, signal: stopping.signal });
