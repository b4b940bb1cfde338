import { addSubscription, type Subscription } from "@booking-events/operations";
import { type Command, Option } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printJson } from "../../terminal/print.ts";
import {
  collectChanges,
  collectCountries,
  collectTexts,
  feedChanges,
  modeOption,
  parseDays,
  parseName,
  payloadOption,
  postingVariables,
} from "./arguments.ts";
import { nameKeys, printKeys } from "./print-keys.ts";

export function addAddCommand(subscriptions: Command, context: Context): void {
  subscriptions
    .command("add")
    .summary("add a subscription and show its secret or token, once")
    .description(
      "Add a subscription: with --url, changes are posted there, signed; without, the subscriber pulls them with a " +
        "token. It begins with the next change. Without --mode, it is latest. Filters decide of which bookings it begins to hear: it also hears " +
        "when one of those is deleted, erased, or leaves the filter.",
    )
    .argument("<name>", "letters, digits, - and _", parseName)
    .option("--url <url>", "where changes are posted to: https")
    .option("--partner <id>", "only bookings of this partner; may be repeated", collectTexts)
    .option("--change <change>", `only these changes: ${feedChanges.join(", ")}; may be repeated`, collectChanges)
    .option("--country <code>", "only bookings with this destination, such as GB; may be repeated", collectCountries)
    .option("--arrival-from-days <days>", "only arrivals from so many days after the change, in UTC", parseDays)
    .option("--arrival-to-days <days>", "only arrivals up to so many days after it", parseDays)
    .addOption(modeOption())
    .addOption(payloadOption().default("thin" as const))
    .addOption(
      new Option("--signature <kind>", "hmac: with a secret; ed25519: with a public key (default: hmac)").choices([
        "hmac",
        "ed25519",
      ] as const),
    )
    .addOption(byOption())
    .option("--json", "print one JSON object: name, and secret, publicKey (ed25519) or token (without --url)")
    .addHelpText(
      "after",
      `${postingVariables}
Examples:
  $ ops subscriptions add arrivals --url https://arrivals.example.com/hook --payload full
  $ ops subscriptions add transfers --url https://example.com/hook --country GB --arrival-from-days 0 --arrival-to-days 14
  $ ops subscriptions add warehouse --payload full --json | jq -r .token`,
    )
    .action((name, options) => add(context, name, options));
}

interface AddOptions {
  url?: string | undefined;
  partner?: string[] | undefined;
  change?: Subscription["changes"] | undefined;
  country?: string[] | undefined;
  arrivalFromDays?: number | undefined;
  arrivalToDays?: number | undefined;
  mode?: "latest" | "every" | undefined;
  payload: "thin" | "full";
  signature?: "hmac" | "ed25519" | undefined;
  by?: string | undefined;
  json?: true | undefined;
}

async function add(context: Context, name: string, options: AddOptions): Promise<void> {
  requireWholeOptions(options);
  const { url = null, partner = null, change = null, country = null, payload, by, json } = options;
  const { arrivalFromDays = null, arrivalToDays = null } = options;
  const shown = await addSubscription(actAs(context, by), {
    name,
    url,
    mode: url === null ? null : (options.mode ?? "latest"),
    payload,
    partners: partner,
    changes: change,
    countries: country,
    arrivalFromDays,
    arrivalToDays,
    signature: url === null ? null : (options.signature ?? "hmac"),
  });
  if (json) printJson(context.stdout, { name, ...shown });
  else printKeys(context, `Added the subscription ${name} with this ${nameKeys(shown)}:`, shown);
}

/** @throws CommandFailure if options contradict each other, or one is missing */
function requireWholeOptions({ url, mode, signature, arrivalFromDays, arrivalToDays }: AddOptions): void {
  if (url === undefined && (mode !== undefined || signature !== undefined))
    throw wrongUsage("--mode and --signature are for posts, and need --url.");
  if ((arrivalFromDays === undefined) !== (arrivalToDays === undefined))
    throw wrongUsage("Give both --arrival-from-days and --arrival-to-days, or neither.");
  if (arrivalFromDays !== undefined && arrivalToDays !== undefined && arrivalFromDays > arrivalToDays)
    throw wrongUsage("--arrival-from-days is after --arrival-to-days.");
}

function wrongUsage(message: string): CommandFailure {
  return new CommandFailure(message, { exitCode: 2 });
}
