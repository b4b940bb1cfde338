import {
  describeBehind,
  describeReaderState,
  describeTarget,
  listSubscriptions,
  type SubscriptionRow,
  toProgress,
} from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printRows } from "../../terminal/print.ts";

export function addListCommand(subscriptions: Command, context: Context): void {
  subscriptions
    .command("list")
    .description("List subscriptions, and how far each is behind. Shows no key and no token.")
    .option(
      "--json",
      "print a JSON array: name, url, mode, payload, partners, changes, countries, arrivalFromDays, arrivalToDays, " +
        "fromId, signature, previousKeyUntil, pausedAt, pauseReason, pausedBy, createdAt, createdBy, updatedAt, " +
        "lagChanges, lagMs, parked, dead, breakerOpenedAt, failingSince",
    )
    .action(async ({ json }) => {
      const rows = await listSubscriptions(context);
      if (json) {
        const shown = rows.map(({ subscription, reader }) => ({ ...subscription, ...toProgress(reader) }));
        printRows(context.stdout, [], shown, { json, none: "" });
      } else printRows(context.stdout, columns, rows, { json, none: "There are no subscriptions." });
    });
}

const columns: Column<SubscriptionRow>[] = [
  { header: "SUBSCRIPTION", value: ({ subscription: { name } }) => name },
  { header: "URL", value: ({ subscription }) => describeTarget(subscription) },
  { header: "STATE", value: describeState },
  { header: "BEHIND", value: ({ reader }) => (reader === undefined ? "" : describeBehind(reader)) },
  { header: "PARKED", value: ({ reader }) => String(reader?.parked ?? 0) },
  { header: "DEAD", value: ({ reader }) => String(reader?.dead ?? 0) },
];

export function describeState({ subscription, reader }: SubscriptionRow): string {
  if (subscription.pausedAt !== null) return "paused";
  return reader === undefined ? "has not begun" : describeReaderState(reader);
}
