import {
  describeDelivery,
  describeFilter,
  type SubscriptionChanges,
  setSubscription,
} from "@booking-events/operations";
import { type Command, Option } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printFields, printLine } from "../../terminal/print.ts";
import { addSettingOptions, postingVariables, type SettingOptions } from "./arguments.ts";

export function addSetCommand(subscriptions: Command, context: Context): void {
  addSettingOptions(subscriptions.command("set").argument("<name>", "the subscription's name"))
    .description(
      "Change a subscription's URL, mode, payload or filter. The rest stays, as do its place and its secret or token. A " +
        "filter is replaced by what is given of it, and decides from then on. Of a booking that the subscriber knows, it " +
        "still hears when that is deleted or erased. Whether changes are posted or pulled can't be changed, and no " +
        "partner can be left out. To give a subscription its first filter, webhooks interrupts it for a moment.",
    )
    .addOption(new Option("--all-partners", "bookings of all partners").conflicts("partner"))
    .addOption(new Option("--all-changes", "all changes").conflicts("change"))
    .addOption(new Option("--all-countries", "bookings with any destination").conflicts("country"))
    .addOption(new Option("--any-arrival", "bookings with any arrival").conflicts(["arrivalFromDays", "arrivalToDays"]))
    .addOption(byOption())
    .addHelpText(
      "after",
      `${postingVariables}
Examples:
  $ ops subscriptions set arrivals --url https://new.example.com/hook
  $ ops subscriptions set arrivals --country GB --country IE --any-arrival`,
    )
    .action((name, { by, ...options }) => set(context, name, toChanges(options), by));
}

interface SetOptions extends SettingOptions {
  allPartners?: true | undefined;
  allChanges?: true | undefined;
  allCountries?: true | undefined;
  anyArrival?: true | undefined;
}

function toChanges(options: SetOptions): SubscriptionChanges {
  const { url, mode, payload, anyArrival } = options;
  return {
    url,
    mode,
    payload,
    partners: options.allPartners ? null : options.partner,
    changes: options.allChanges ? null : options.change,
    countries: options.allCountries ? null : options.country,
    arrivalFromDays: anyArrival ? null : options.arrivalFromDays,
    arrivalToDays: anyArrival ? null : options.arrivalToDays,
  };
}

async function set(context: Context, name: string, changes: SubscriptionChanges, by?: string): Promise<void> {
  if (Object.values(changes).every((change) => change === undefined))
    throw new CommandFailure("Say what to change: see ops subscriptions set --help.", { exitCode: 2 });
  const subscription = await setSubscription(actAs(context, by), name, changes);
  printLine(context.stdout, `Changed the subscription ${name}:`);
  printFields(context.stdout, [
    ["URL", subscription.url],
    ["Delivery", describeDelivery(subscription)],
    ["Filter", describeFilter(subscription)],
    ["State", subscription.pausedAt && "paused"],
  ]);
}
