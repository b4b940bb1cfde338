import { type ActingContext, holdPartner } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printLine } from "../../terminal/print.ts";

export function addHoldCommands(partners: Command, context: Context): void {
  partners
    .command("hold")
    .summary("let a partner's sender keep its events while you talk")
    .description(
      "Answer a partner's events with 503 and Retry-After until it is released. A sender that follows the guide keeps " +
        "them, and sends them again. Its questions are answered, and what it has sent already is applied.",
    )
    .argument("<id>", "the partner's id")
    .addOption(byOption())
    .action((id, { by }) => hold(context, actAs(context, by), id, true));
  partners
    .command("release")
    .summary("take a partner's events again after a hold")
    .description("Take a partner's events again after a hold.")
    .argument("<id>", "the partner's id")
    .addOption(byOption())
    .action((id, { by }) => hold(context, actAs(context, by), id, false));
}

async function hold({ stdout }: Context, acting: ActingContext, id: string, held: boolean): Promise<void> {
  const hasChanged = await holdPartner(acting, id, held);
  const already = hasChanged ? "now" : "already";
  printLine(
    stdout,
    held
      ? `Partner ${id} is ${already} on hold: its events get 503. To take them again: ops partners release ${id}`
      : `Partner ${id} is ${hasChanged ? "released" : "not on hold"}: its events are accepted.`,
  );
}
