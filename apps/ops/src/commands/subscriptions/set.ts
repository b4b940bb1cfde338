import { type Subscription, type SubscriptionChanges, setSubscription } from "@booking-events/operations";
import { type Command, Option } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printFields, printLine } from "../../terminal/print.ts";
import {
  collectChanges,
  collectCountries,
  collectTexts,
  feedChanges,
  modeOption,
  parseDays,
  payloadOption,
  postingVariables,
} from "./arguments.ts";
import { describeDelivery, describeFilter } from "./show.ts";

export function addSetCommand(subscriptions: Command, context: Context): void {
  subscriptions
    .command("set")
    .summary("change a subscription's URL, mode, payload or filter")
    .description(
      "Change a subscription's URL, mode, payload or filter. The rest stays, as do its place and its secret or token. A " +
        "filter is replaced by what is given of it, and decides from then on. Of a booking that the subscriber knows, it " +
        "still hears when that is deleted or erased. Whether changes are posted or pulled can't be changed, and no " +
        "partner can be left out. To give a subscription its first filter, webhooks interrupts it for a moment.",
    )
    .argument("<name>", "the subscription's name")
    .option("--url <url>", "where changes are posted to: https")
    .option("--partner <id>", "only bookings of this partner; may be repeated", collectTexts)
    .addOption(new Option("--all-partners", "bookings of all partners").conflicts("partner"))
    .option("--change <change>", `only these changes: ${feedChanges.join(", ")}; may be repeated`, collectChanges)
    .addOption(new Option("--all-changes", "all changes").conflicts("change"))
    .option("--country <code>", "only bookings with this destination, such as GB; may be repeated", collectCountries)
    .addOption(new Option("--all-countries", "bookings with any destination").conflicts("country"))
    .option("--arrival-from-days <days>", "only arrivals from so many days after the change, in UTC", parseDays)
    .option("--arrival-to-days <days>", "only arrivals up to so many days after it", parseDays)
    .addOption(new Option("--any-arrival", "bookings with any arrival").conflicts(["arrivalFromDays", "arrivalToDays"]))
    .addOption(modeOption())
    .addOption(payloadOption())
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

interface SetOptions {
  url?: string | undefined;
  partner?: string[] | undefined;
  allPartners?: true | undefined;
  change?: Subscription["changes"] | undefined;
  allChanges?: true | undefined;
  country?: string[] | undefined;
  allCountries?: true | undefined;
  arrivalFromDays?: number | undefined;
  arrivalToDays?: number | undefined;
  anyArrival?: true | undefined;
  mode?: "latest" | "every" | undefined;
  payload?: "thin" | "full" | undefined;
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
