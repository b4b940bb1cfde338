import { existsSync } from "node:fs";
import { insertSubscription, type Subscription } from "@booking-events/store";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { withDatabase } from "../services/database.ts";
import { partnersPath, requirePartner } from "../services/partners-file.ts";
import { explainUrlFault } from "./explain-url-fault.ts";
import { loadSubscribers } from "./load-subscribers.ts";
import { makeKeys, type ShownKeys } from "./make-keys.ts";
import { readNetwork } from "./post-test-event.ts";

export type NewSubscription = Pick<
  Subscription,
  | "name"
  | "url"
  | "mode"
  | "payload"
  | "partners"
  | "changes"
  | "countries"
  | "arrivalFromDays"
  | "arrivalToDays"
  | "signature"
>;

/**
 * Adds a subscription.
 *
 * @returns what the subscriber gets, once
 * @throws OperationFailure if the process that posts would refuse it, or the name is taken
 */
export async function addSubscription(
  context: Context,
  subscription: NewSubscription,
  { by }: { by: string },
): Promise<ShownKeys> {
  const { name, url, partners } = subscription;
  if (url !== null) await requirePublicUrl(context, url);
  if (existsSync(partnersPath(context))) for (const id of partners ?? []) requirePartner(context, id);
  const { stored, shown } = await makeKeys(subscription.signature);
  const result = await withDatabase(context, (pool) =>
    insertSubscription(pool, { ...subscription, ...stored, createdBy: by }),
  );
  if (result === "taken")
    throw new OperationFailure(
      `The name ${name} is taken by a subscription or another reader of the feed. Choose another one. List all: ` +
        "ops feed list",
    );
  return shown;
}

async function requirePublicUrl(context: Context, url: string): Promise<void> {
  const { findUrlFault } = await loadSubscribers();
  const fault = findUrlFault(url, readNetwork(context));
  if (fault !== undefined) throw new OperationFailure(explainUrlFault(fault));
}
