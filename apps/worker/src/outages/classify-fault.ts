import { describeError } from "@booking-events/runtime";
import { NotBegun, OtherDatabase } from "@booking-events/store";
import { DatabaseError } from "pg";

/** Why something failed. It is stored and logged, so it holds nothing of the event's content. */
export interface Fault {
  /** An SQLSTATE, a code of the operating system, or an error's name. */
  code: string;
  message: string;
  /** The event's content is the reason. A retry can't help, so the event becomes a dead letter immediately. */
  isOfContent: boolean;
}

/** Classes of SQLSTATE (the first two characters) that blame the content: data exception, program limit exceeded. */
const contentClasses = new Set(["22", "54"]);

/**
 * Whether an integrity constraint was violated. No accepted event can cause that. Either our code has a bug, or
 * somebody changed the tables, for example by restoring a dump that left `feed_position` behind `booking_changes`.
 */
export function isConstraintViolation({ code }: Fault): boolean {
  return code.startsWith("23");
}

export function classifyFault(error: unknown): Fault {
  if (error instanceof NotBegun) {
    const code = describeError(error.cause).code ?? "CONNECTION";
    return { code, message: "PostgreSQL could not be reached.", isOfContent: false };
  }
  if (error instanceof DatabaseError && error.code !== undefined) {
    const { code } = error;
    const place = describePlace(error);
    return contentClasses.has(code.slice(0, 2))
      ? { code, message: `PostgreSQL can't hold what the event contains (${place}).`, isOfContent: true }
      : { code, message: `PostgreSQL refused to apply the event (${place}).`, isOfContent: false };
  }
  if (error instanceof OtherDatabase) return { code: error.code, message: error.message, isOfContent: false };
  if (!(error instanceof Error))
    return { code: "UNKNOWN", message: "The worker threw a value that is not an error.", isOfContent: false };
  const code = describeError(error).code ?? error.name;
  return { code, message: `The worker failed to apply the event (${code}).`, isOfContent: false };
}

/** Returns the SQLSTATE, and what PostgreSQL names as its place. These are names in the schema, never values. */
function describePlace({ code, table, column, constraint }: DatabaseError): string {
  const names = Object.entries({ table, column, constraint }).filter(([, name]) => name !== undefined);
  return [`SQLSTATE ${code}`, ...names.map((pair) => pair.join(" "))].join(", ");
}
