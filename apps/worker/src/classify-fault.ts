import { describeError } from "@booking-events/service";
import { DatabaseError } from "pg";

/**
 * Who is at fault when an event could not be applied, which decides what happens next:
 * - `outage`: PostgreSQL or the way to it. Wait and try again; no attempt is used up.
 * - `event`: what the event holds; trying again can't help. It becomes a dead letter at once.
 * - `unknown`: our own mistake, most likely. Try again by the retry policy; after the last attempt, a dead letter.
 */
export type Fault = { who: "outage" | "event" | "unknown"; code: string; message: string };

/**
 * Classes of SQLSTATE (the first two characters) that speak of the event's content: data exception, integrity
 * constraint violation, program limit exceeded.
 */
const eventClasses = new Set(["22", "23", "54"]);

/**
 * Classes that speak of PostgreSQL, its settings or its load, none of which an event can help: connection, transaction
 * state (read-only, too), authorization, missing database, rollback (deadlock, serialization), missing table or
 * privilege, resources, object state, operator intervention, system error, configuration file.
 */
const outageClasses = new Set(["08", "25", "28", "3D", "40", "42", "53", "55", "57", "58", "F0"]);

/** What node-postgres throws without a code when a connection breaks or is late. */
const connectionMessages = [
  "Connection terminated",
  "Client has encountered a connection error",
  "timeout expired",
  "timeout exceeded when trying to connect",
  "Query read timeout",
  "Client was closed and is not queryable",
  "The server does not support SSL connections",
];

/** @returns the fault; its message holds nothing of the event's content, for it is stored and logged */
export function classifyFault(error: unknown): Fault {
  if (error instanceof DatabaseError && error.code !== undefined) {
    const { code } = error;
    const sqlstateClass = code.slice(0, 2);
    if (eventClasses.has(sqlstateClass)) {
      return { who: "event", code, message: `PostgreSQL can't hold what the event contains (SQLSTATE ${code}).` };
    }
    const who = outageClasses.has(sqlstateClass) ? "outage" : "unknown";
    return { who, code, message: `PostgreSQL refused to apply the event (SQLSTATE ${code}).` };
  }
  if (!(error instanceof Error))
    return { who: "unknown", code: "UNKNOWN", message: "Something was thrown that is no error." };
  if (isConnectionError(error)) {
    const code = describeError(error).code ?? "CONNECTION";
    return { who: "outage", code, message: "PostgreSQL could not be reached." };
  }
  return { who: "unknown", code: error.name, message: `The worker failed to apply the event (${error.name}).` };
}

function isConnectionError(error: Error): boolean {
  const isSystemError = "syscall" in error || (error instanceof AggregateError && error.errors.some(isConnectionError));
  return isSystemError || connectionMessages.some((start) => error.message.startsWith(start));
}
