import {
  describeBehind,
  describeDelivery,
  describeFilter,
  readSubscription,
  type SubscriptionRow,
  toProgress,
  toSeconds,
} from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { type Field, printFields, printHeading, printJson } from "../../terminal/print.ts";
import { describeState } from "./list.ts";

export function addShowCommand(subscriptions: Command, context: Context): void {
  subscriptions
    .command("show")
    .description("Show one subscription: what it gets, how far it is, and, of ed25519, its public key.")
    .argument("<name>", "the subscription's name")
    .option("--json", "print one JSON object: as list, and publicKey")
    .action(async (name, { json }) => {
      const row = await readSubscription(context, name);
      const { subscription, publicKey, reader } = row;
      if (json) {
        printJson(context.stdout, { ...subscription, publicKey, ...toProgress(reader) });
        return;
      }
      printHeading(context.stdout, name);
      printFields(context.stdout, describeFields(row));
    });
}

function describeFields(row: SubscriptionRow & { publicKey: string | null }): Field[] {
  const { subscription, reader, publicKey } = row;
  const { url, previousKeyUntil, pausedAt, pausedBy, pauseReason } = subscription;
  const why = pauseReason === null ? "" : `: ${pauseReason}`;
  return [
    ["URL", url],
    ["Delivery", describeDelivery(subscription)],
    ["Public key", publicKey],
    ["Old key", previousKeyUntil && `in use until ${toSeconds(previousKeyUntil)}`],
    ["Filter", describeFilter(subscription)],
    ["State", describeState(row)],
    ["Paused", pausedAt && `${toSeconds(pausedAt)} by ${pausedBy}${why}`],
    ["Behind", reader && describeBehind(reader)],
    ["Parked", reader?.parked],
    ["Dead letters", reader?.dead],
    ["Added", `${toSeconds(subscription.createdAt)} by ${subscription.createdBy}`],
  ];
}
