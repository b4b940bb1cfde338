import { parseEnvironment, variables } from "@booking-events/runtime";
import { type DigestKey, DigestKeyError, openDigestKey } from "@booking-events/store";
import type { Context, Pool } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";

/** @throws OperationFailure if it is not the key that the database's digests were made with */
export async function openKey({ environment }: Context, pool: Pool): Promise<DigestKey> {
  const { DIGEST_KEY } = parseEnvironment({ DIGEST_KEY: variables.DIGEST_KEY }, environment);
  try {
    return await openDigestKey(pool, DIGEST_KEY);
  } catch (error) {
    throw error instanceof DigestKeyError ? new OperationFailure(error.message, { cause: error }) : error;
  }
}
