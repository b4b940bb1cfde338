import {
  changePartnersFile,
  type Partner,
  PartnersError,
  type PartnersFile,
  partnerIdPattern,
  readPartnersFile,
} from "@booking-events/partners";
import { parseEnvironment, variables } from "@booking-events/runtime";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";

/**
 * Changes the partners file, and tells its warnings.
 *
 * @throws OperationFailure if the file or the change is refused
 */
export async function changeFile<Result extends { file: PartnersFile }>(
  context: Context,
  apply: (file: PartnersFile) => Result,
  createIfMissing = false,
): Promise<Result & { isNew: boolean }> {
  try {
    const changed = await changePartnersFile(partnersPath(context), apply, { createIfMissing });
    for (const warning of changed.warnings) context.notify(`Warning: ${warning}`);
    return changed;
  } catch (error) {
    throw describePartnersError(error);
  }
}

/** @throws OperationFailure if it can't be read, or `read` refuses */
export function readFile<Result>(context: Context, read: (file: PartnersFile) => Result): Result {
  try {
    return read(readPartnersFile(partnersPath(context)));
  } catch (error) {
    throw describePartnersError(error);
  }
}

function describePartnersError(error: unknown): unknown {
  return error instanceof PartnersError ? new OperationFailure(error.message) : error;
}

/**
 * @param consequence a sentence for the operator
 * @throws OperationFailure if the partners file has no such partner
 */
export function requirePartner(context: Context, id: string, consequence = ""): Partner {
  const partner = readFile(context, ({ partners }) => partners.find((candidate) => candidate.id === id));
  if (partner !== undefined) return partner;
  throw new OperationFailure(`There is no partner ${id} in ${partnersPath(context)}. ${consequence}`.trimEnd());
}

export function isPartnerId(text: string): boolean {
  return partnerIdPattern.test(text);
}

export const noPartnerId = "The id of a partner has lower-case letters, digits, - and _. See ops partners list.";

/**
 * For what is recorded, which can't be removed: a text that can't be an id may be anything, such as a guest's reference.
 *
 * @throws OperationFailure
 */
export function requirePartnerId(text: string): void {
  if (!isPartnerId(text)) throw new OperationFailure(noPartnerId);
}

/** @returns null: this host does not have the partners file, or it is not valid */
export function readPartnersIfPossible(context: Context): Partner[] | null {
  try {
    return readPartnersFile(partnersPath(context)).partners;
  } catch (error) {
    if (error instanceof PartnersError) return null;
    throw error;
  }
}

/**
 * Tells an empty list from one of a partner that does not exist. Without a partners file, nobody can tell.
 *
 * @throws OperationFailure if nothing was found, and the partners file has no such partner
 */
export function requireKnown(context: Context, partner: string | undefined, found: { length: number }): void {
  if (partner === undefined || found.length > 0) return;
  const partners = readPartnersIfPossible(context);
  if (partners?.every(({ id }) => id !== partner))
    throw new OperationFailure(`There is no partner ${partner}, and nothing of one. List all: ops partners list`);
}

/** Whether it is a test partner. One that is not in the partners file is none; nor is any, if there is no file. */
export function isTestPartner(context: Context, id: string): boolean {
  return readPartnersIfPossible(context)?.some((partner) => partner.id === id && partner.test) ?? false;
}

export function partnersPath({ environment }: Context): string {
  return parseEnvironment({ PARTNERS_FILE: variables.PARTNERS_FILE }, environment).PARTNERS_FILE;
}
