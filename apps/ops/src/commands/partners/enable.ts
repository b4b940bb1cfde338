import { type ActingContext, enablePartner, findRecentUse, toSeconds } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { confirm } from "../../terminal/confirm.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printLine } from "../../terminal/print.ts";

export function addEnableCommands(partners: Command, context: Context): void {
  partners
    .command("disable")
    .summary("refuse a partner's events")
    .description("Refuse a partner's events, whatever the secret, until it is enabled again.")
    .argument("<id>", "the partner's id")
    .option("--yes", "don't ask, even if it has sent something within a day")
    .addOption(byOption())
    .action(async (id, { yes, by }) => {
      const acting = actAs(context, by);
      const usedAt = await findRecentUse(context, { id });
      if (usedAt !== null)
        await confirm(
          context,
          `Partner ${id} sent something at ${toSeconds(usedAt)}. Its senders lose what gets 403; to let them keep it: ` +
            `ops partners hold ${id}. Disable it`,
          yes,
        );
      await enable(context, acting, id, false);
    });
  partners
    .command("enable")
    .summary("accept a disabled partner's events again")
    .description("Accept a disabled partner's events again.")
    .argument("<id>", "the partner's id")
    .addOption(byOption())
    .action((id, { by }) => enable(context, actAs(context, by), id, true));
}

async function enable({ stdout }: Context, acting: ActingContext, id: string, enabled: boolean): Promise<void> {
  const hasChanged = await enablePartner(acting, id, enabled);
  const state = enabled ? "enabled" : "disabled";
  const effect = enabled ? "its events are accepted" : "its events are refused, whatever the secret";
  printLine(stdout, hasChanged ? `Partner ${id} is now ${state}: ${effect}.` : `Partner ${id} was already ${state}.`);
}
