import { type DestinationStream, type Logger, pino } from "pino";
import { LogWriter } from "./write-log.ts";

export type { Logger } from "pino";

/**
 * Logs each message as a line of JSON on standard output. Buffered lines are written when the process exits, but not if
 * it is killed; nothing depends on the log for recovery. If the log cannot be written, because its disk is full or
 * nobody reads it, the process continues its work.
 *
 * An error is logged under the key `err` by {@link describeError}, not by pino's own serializer. That one prints every
 * property, and PostgreSQL's `detail` or a parser's `body` would put guests' data into the log.
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

/**
 * Shared by all loggers of the process. If standard output is a pipe, accessing process.stdout has made it
 * non-blocking.
 */
function standardOutput(): LogWriter {
  onlyOutput ??= new LogWriter(process.stdout.fd);
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
 * Describes an error without any of the data that caused it.
 *
 * The message is kept only if its author is known to include no data: errors of the operating system (they have a
 * `syscall`), and our own classes marked with {@link safeMessage}. A Redis error keeps its first word, such as `OOM`.
 * The stack keeps its frames and loses its first lines, which repeat the message.
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

/** Our error classes whose messages never contain data set this property to true on their instances. */
export const safeMessage = Symbol.for("booking-events.safeMessage");

function isSafeMessage(error: Error): boolean {
  return (error as { [safeMessage]?: unknown })[safeMessage] === true;
}
