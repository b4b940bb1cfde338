import { type DestinationStream, type Logger, pino } from "pino";
import { createLogWriter, type LogWriter } from "./write-log.ts";

export type { Logger } from "pino";

/**
 * One JSON line a message, on standard output. What is still to be written is written when the process ends, unless it
 * is killed: the log is not what anything is recovered from. So a log that can't be written (its disk is full, nobody
 * reads it) keeps no process from its work.
 *
 * An error is logged under the key `err` by {@link describeError}, never by pino's own serializer: that one prints
 * every property, and PostgreSQL's `detail` or a parser's `body` would put guests' data into the log.
 *
 * @param destination standard output by default
 */
export function createLogger(
  options: { name: string; level: string },
  destination: DestinationStream = standardOutput(),
): Logger {
  return pino(
    {
      name: options.name,
      level: options.level,
      base: { name: options.name, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
    },
    destination,
  );
}

let onlyOutput: LogWriter | undefined;

/** One for all loggers of the process. Its pipe, if it is one, does not block: process.stdout has seen to that. */
function standardOutput(): LogWriter {
  onlyOutput ??= createLogWriter(process.stdout.fd);
  return onlyOutput;
}

export interface ErrorDescription {
  type: string;
  code?: string;
  message?: string;
  stack?: string;
  cause?: ErrorDescription;
}

/**
 * What may be said of an error without saying anything of the data that caused it.
 *
 * A message is kept only where its author is known to put no data into it: the operating system's errors (they have a
 * `syscall`) and our own classes, which are marked with {@link safeMessage}. A Redis reply keeps its first word, such
 * as `OOM`. The stack keeps its frames and loses its first lines, which repeat the message.
 */
export function describeError(error: unknown): ErrorDescription {
  if (!(error instanceof Error)) return { type: typeof error };
  const { code, syscall } = error as { code?: unknown; syscall?: unknown };
  const description: ErrorDescription = { type: error.name };
  if (typeof code === "string" || typeof code === "number") description.code = String(code);
  if (error.name === "ReplyError") {
    description.code = error.message.split(" ", 1)[0] ?? "ERR";
  } else if (typeof syscall === "string" || isSafeMessage(error)) {
    description.message = error.message;
  }
  const frames = error.stack?.split("\n").filter((line) => line.startsWith("    at "));
  if (frames !== undefined && frames.length > 0) description.stack = frames.join("\n");
  if (error.cause !== undefined) description.cause = describeError(error.cause);
  return description;
}

/** An error class whose messages are written by us, without any data, sets this to true on its instances. */
export const safeMessage = Symbol.for("booking-events.safeMessage");

function isSafeMessage(error: Error): boolean {
  return (error as { [safeMessage]?: unknown })[safeMessage] === true;
}
