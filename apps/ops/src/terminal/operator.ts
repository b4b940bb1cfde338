import { userInfo } from "node:os";
import type { ActingContext } from "@booking-events/operations";
import { parseEnvironment, variables } from "@booking-events/runtime";
import { Option } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { parseNote } from "./arguments.ts";
import { CommandFailure } from "./command-failure.ts";

/** Of each command that changes something. */
export function byOption() {
  return new Option("--by <name>", "who you are, which is recorded (default: OPERATOR)").argParser(parseNote);
}

/**
 * Says who acts: `--by`, OPERATOR, or else the system's user.
 *
 * @throws CommandFailure if the system's user is not enough
 */
export function actAs(context: Context, by: string | undefined): ActingContext {
  return { ...context, by: by ?? findOperator(context) };
}

function findOperator({ environment, notify }: Context): string {
  const { OPERATOR, OPERATOR_REQUIRED } = variables;
  const settings = parseEnvironment({ OPERATOR, OPERATOR_REQUIRED }, environment);
  const operator = settings.OPERATOR?.trim() ?? "";
  if (operator !== "") return operator;
  if (settings.OPERATOR_REQUIRED)
    throw new CommandFailure("Say who you are: --by NAME, or OPERATOR. Nothing was done.", { exitCode: 2 });
  const user = findSystemUser();
  notify(`Recorded as done by ${user}, the system's user. Say who you are: --by NAME, or OPERATOR.`);
  return user;
}

function findSystemUser(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a user without a name.
    return `uid ${process.getuid?.()}`;
  }
}
