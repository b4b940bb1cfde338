import { changePartnersFile, type Partner, type PartnersFile, readPartnersFile } from "@booking-events/partners";
import { parseEnvironment, variables } from "@booking-events/runtime";
import type { Context } from "./context.ts";
import { CommandFailure } from "./terminal/command-failure.ts";
import { printLine } from "./terminal/print.ts";

/** Changes the partners file, and prints its warnings. */
export async function changeFile<Result extends { file: PartnersFile }>(
  context: Context,
  apply: (file: PartnersFile) => Result,
  createIfMissing = false,
): Promise<Result & { isNew: boolean }> {
  const changed = await changePartnersFile(partnersPath(context), apply, { createIfMissing });
  for (const warning of changed.warnings) printLine(context.stderr, `Warning: ${warning}`);
  return changed;
}

/**
 * @param consequence a sentence for the operator
 * @throws CommandFailure if the partners file has no such partner
 */
export function requirePartner(context: Context, id: string, consequence = ""): Partner {
  const path = partnersPath(context);
  const partner = readPartnersFile(path).partners.find((candidate) => candidate.id === id);
  if (partner !== undefined) return partner;
  throw new CommandFailure(`There is no partner ${id} in ${path}. ${consequence}`.trimEnd());
}

export function partnersPath({ environment }: Context): string {
  return parseEnvironment({ PARTNERS_FILE: variables.PARTNERS_FILE }, environment).PARTNERS_FILE;
}
