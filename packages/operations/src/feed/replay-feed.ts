import { findSubscription, replayFeedSince } from "@booking-events/store";
import { type ActingContext, recordTransaction } from "../actions/record-action.ts";
import { OperationFailure } from "../operation-failure.ts";
import { requireSubscription } from "../subscriptions/find-subscription.ts";
import { commandOf, type NamedReader, unknownReader } from "./readers.ts";

/**
 * Gives a reader all changes since a time again.
 *
 * @returns how many
 */
export function replayFeed(context: ActingContext, { what, name }: NamedReader, since: Date): Promise<number> {
  const action = { command: `${commandOf[what]} replay`, arguments: { [what]: name, since } };
  return recordTransaction(context, action, async (client, record) => {
    const subscription = await (what === "subscription" ? requireSubscription : findSubscription)(client, name);
    if (subscription?.url === null)
      throw new OperationFailure(`The subscriber of ${name} pulls: it asks for what it wants again, by after.`);
    const changes = await replayFeedSince(client, name, since);
    if (changes === undefined)
      throw what === "reader"
        ? unknownReader(name)
        : new OperationFailure(`Nothing has been posted to ${name} yet. Check that the process webhooks runs.`);
    record.did = { changes };
    return changes;
  });
}
