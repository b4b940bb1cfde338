import { describeError } from "@booking-events/runtime";
import { NotBegun } from "@booking-events/store";
import { DatabaseError } from "pg";

/** Why something failed, in words that hold nothing of the event's content: they are stored and logged. */
export interface Fault {
  /** SQLSTATE, the operating system's code, or an error's name. */
  code: string;
  message: string;
  /** What the event holds is the reason. Trying again can't help, so it becomes a dead letter at once. */
  isOfContent: boolean;
}

/**
 * Classes of SQLSTATE (the first two characters) that speak of the event's content: data exception, program limit
 * exceeded.
 */
const contentClasses = new Set(["22", "54"]);

/**
 * Integrity constraint violation. No event that was accepted can cause one: our code has made a mistake, or somebody
 * has changed the tables, such as by restoring a dump that left an identity behind its rows.
 */
export function isConstraintViolation({ code }: Fault): boolean {
  return code.startsWith("23");
}

export function describeFault(error: unknown): Fault {
  if (error instanceof NotBegun) {
    const code = describeError(error.cause).code ?? "CONNECTION";
    return { code, message: "PostgreSQL could not be reached.", isOfContent: false };
  }
  if (error instanceof DatabaseError && error.code !== undefined) {
    const { code } = error;
    return contentClasses.has(code.slice(0, 2))
      ? { code, message: `PostgreSQL can't hold what the event contains (SQLSTATE ${code}).`, isOfContent: true }
      : { code, message: `PostgreSQL refused to apply the event (SQLSTATE ${code}).`, isOfContent: false };
  }
  if (!(error instanceof Error))
    return { code: "UNKNOWN", message: "Something was thrown that is not an error.", isOfContent: false };
  const code = describeError(error).code ?? error.name;
  return { code, message: `The worker failed to apply the event (${code}).`, isOfContent: false };
}
