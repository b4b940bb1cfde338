import { addSubscription } from "@booking-events/operations";
import { type Command, Option } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printJson } from "../../terminal/print.ts";
import { addSettingOptions, parseName, postingVariables, type SettingOptions } from "./arguments.ts";
import { nameKeys, printKeys } from "./print-keys.ts";

export function addAddCommand(subscriptions: Command, context: Context): void {
  addSettingOptions(subscriptions.command("add").argument("<name>", "letters, digits, - and _", parseName))
    .description(
      "Add a subscription: with --url, changes are posted there, signed; without, the subscriber pulls them with a " +
        "token. Posts begin with the next change; whoever pulls begins where it asks. Without --mode, it is latest; " +
        "without --payload, thin. Filters decide of which bookings it begins to hear: it also hears when one of those is " +
        "deleted, erased, or leaves the filter.",
    )
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

interface AddOptions extends SettingOptions {
  signature?: "hmac" | "ed25519" | undefined;
  by?: string | undefined;
  json?: true | undefined;
}

async function add(context: Context, name: string, options: AddOptions): Promise<void> {
  requireWholeOptions(options);
  const { url = null, partner = null, change = null, country = null, payload = "thin", by, json } = options;
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
