import { parseEnvironment, variables } from "@booking-events/runtime";
import { type DigestKey, DigestKeyError, openDigestKey, type Queryable, readDigestKey } from "@booking-events/store";
import type { Context, Pool } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";

/**
 * Reads the key without recording that it is in use.
 *
 * @throws OperationFailure if it is not the key that the database's digests were made with
 */
export async function readKey({ environment }: Context, client: Queryable): Promise<DigestKey> {
  const { DIGEST_KEY } = parseEnvironment({ DIGEST_KEY: variables.DIGEST_KEY }, environment);
  try {
    return await readDigestKey(client, DIGEST_KEY);
  } catch (error) {
    throw error instanceof DigestKeyError ? new OperationFailure(error.message, { cause: error }) : error;
  }
}

/** @throws OperationFailure if it is not the key that the database's digests were made with */
export async function openKey({ environment }: Context, pool: Pool): Promise<DigestKey> {
  const { DIGEST_KEY } = parseEnvironment({ DIGEST_KEY: variables.DIGEST_KEY }, environment);
  try {
    return await openDigestKey(pool, DIGEST_KEY);
  } catch (error) {
    throw error instanceof DigestKeyError ? new OperationFailure(error.message, { cause: error }) : error;
  }
}
