import { parseEnvironment, variables } from "@booking-events/runtime";
import { type DigestKey, DigestKeyError, openDigestKey, type Queryable, readDigestKey } from "@booking-events/store";
import type { Context, Pool } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";

/**
 * Reads the key without recording that it is in use.
 *
 * @throws OperationFailure if it is not the key that the database's digests were made with
 */
export function readKey(context: Context, client: Queryable): Promise<DigestKey> {
  return readDigestKey(client, readGiven(context)).catch(describeKeyError);
}

/** @throws OperationFailure if it is not the key that the database's digests were made with */
export function openKey(context: Context, pool: Pool): Promise<DigestKey> {
  return openDigestKey(pool, readGiven(context)).catch(describeKeyError);
}

function readGiven({ environment }: Context) {
  return parseEnvironment({ DIGEST_KEY: variables.DIGEST_KEY }, environment).DIGEST_KEY;
}

function describeKeyError(error: unknown): never {
  throw error instanceof DigestKeyError ? new OperationFailure(error.message, { cause: error }) : error;
}
