import { enablePartner } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { printLine } from "../../terminal/print.ts";

export function addEnableCommands(partners: Command, context: Context): void {
  partners
    .command("disable")
    .summary("refuse a partner's events")
    .description("Refuse a partner's events, whatever the secret, until it is enabled again.")
    .argument("<id>", "the partner's id")
    .action((id) => enable(context, id, false));
  partners
    .command("enable")
    .summary("accept a disabled partner's events again")
    .description("Accept a disabled partner's events again.")
    .argument("<id>", "the partner's id")
    .action((id) => enable(context, id, true));
}

async function enable(context: Context, id: string, enabled: boolean): Promise<void> {
  const hasChanged = await enablePartner(context, id, enabled);
  const state = enabled ? "enabled" : "disabled";
  const effect = enabled ? "its events are accepted" : "its events are refused, whatever the secret";
  printLine(
    context.stdout,
    hasChanged ? `Partner ${id} is now ${state}: ${effect}.` : `Partner ${id} was already ${state}.`,
  );
}
