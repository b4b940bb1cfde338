import { parseEnvironment, variables } from "@booking-events/runtime";
import { type createPool, type DigestKey, DigestKeyError, openDigestKey } from "@booking-events/store";
import type { Context } from "./context.ts";
import { CommandFailure } from "./terminal/command-failure.ts";

/** @throws CommandFailure if it is not the key that the database's digests were made with */
export async function openKey({ environment }: Context, pool: ReturnType<typeof createPool>): Promise<DigestKey> {
  const { DIGEST_KEY } = parseEnvironment({ DIGEST_KEY: variables.DIGEST_KEY }, environment);
  try {
    return await openDigestKey(pool, DIGEST_KEY);
  } catch (error) {
    throw error instanceof DigestKeyError ? new CommandFailure(error.message, { cause: error }) : error;
  }
}
