import { isValid, type PartnersFile } from "@booking-events/partners";
import { type Revocation, recordRevocations } from "@booking-events/queue";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { knowsRedis, withRedis } from "../services/queue.ts";

/**
 * Records in Redis that secrets are refused from now on, so that an old copy of the partners file does not bring them
 * back. They are refused already, so a failure is only a warning.
 *
 * @param isMeant by the id of a secret. Those that are still valid are left out
 */
export async function recordRevoked(
  context: Context,
  file: PartnersFile,
  partnerId: string,
  isMeant: (secretId: string) => boolean,
): Promise<void> {
  const now = context.now();
  const secrets = file.partners.find(({ id }) => id === partnerId)?.secrets ?? [];
  const revocations = secrets
    .filter((secret) => isMeant(secret.id) && !isValid(secret, now))
    .map(({ id, sha256 }): Revocation => ({ sha256, partner: partnerId, secretId: id }));
  if (revocations.length === 0) return;
  const problem = await tryToRecord(context, revocations);
  if (problem === null) return;
  context.notify(
    `Warning: the revocation could not be recorded in Redis, so an old partners file could bring the secret back. ` +
      `${problem} Then run: ${revocations.map(({ secretId }) => `ops partners revoke ${partnerId} ${secretId}`).join("; ")}`,
  );
}

/** @returns a sentence that says what is wrong; null: nothing */
async function tryToRecord(context: Context, revocations: Revocation[]): Promise<string | null> {
  if (!knowsRedis(context.environment)) return "Set REDIS_URL as for ingest.";
  try {
    await withRedis(context, (settings) => recordRevocations(settings, revocations));
    return null;
  } catch (error) {
    if (error instanceof OperationFailure) return error.message;
    throw error;
  }
}
