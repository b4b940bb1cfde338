import { writeSync } from "node:fs";
import { constants } from "node:os";
import { runProgram } from "./program.ts";

// A signal ends the command between two steps and never within one, so the partners file is not left locked.
let describeAtSignal: (() => string) | undefined;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => {
    if (describeAtSignal !== undefined) process.stderr.write(`${describeAtSignal()}\n`);
    process.exit(128 + constants.signals[signal]);
  });
}
let endsWithReader = false;
// EPIPE: the reader of the pipe, such as `head`, needs no more output. What the command does, and its exit code, matter
// all the same.
for (const output of [process.stdout, process.stderr]) {
  output.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") exitUnwritten(error);
    if (endsWithReader) process.exit(0);
    output.write = () => true;
    // For a command that waits until the reader has taken the last output. It must not see the error.
    output.emit("drain");
  });
}

/** A full disk, for example. What was lost may be a secret that nobody else has. */
function exitUnwritten({ code }: NodeJS.ErrnoException): never {
  const message =
    `The output could not be written (${code}). What the command changed stays. ` +
    "After partners add or rotate, rotate again: the new secret was lost.\n";
  // The process would end before an asynchronous write.
  try {
    writeSync(process.stderr.fd, message);
  } finally {
    process.exit(1);
  }
}

process.exitCode = await runProgram(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  environment: process.env,
  now: () => new Date(),
  endWithReader() {
    endsWithReader = true;
  },
  atSignal(describe) {
    describeAtSignal = describe;
  },
});
