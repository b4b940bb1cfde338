import { admitPartner, findRecentUse, toSeconds } from "@booking-events/operations";
import { type Command, Option } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { confirm } from "../../terminal/confirm.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printLine } from "../../terminal/print.ts";

/** Of each command: what it does, and what is so then. */
const verbs = {
  disable: [
    "Refuse a partner's events, whatever the secret, until it is enabled again.",
    () => "disabled: its events are refused, whatever the secret.",
  ],
  enable: ["Accept a disabled partner's events again.", () => "enabled: its events are accepted."],
  hold: [
    "Let a partner's sender keep its events while you talk: they get 503 and Retry-After until it is released. A sender that follows the guide keeps " +
      "them, and sends them again. Its questions are answered, and what it has sent already is applied.",
    (id) => `on hold: its events get 503, until: ops partners release ${id}`,
  ],
  release: ["Take a partner's events again after a hold.", () => "released: its events are accepted."],
} satisfies Record<string, [description: string, effect: (id: string) => string]>;

export function addAdmitCommands(partners: Command, context: Context): void {
  for (const verb of Object.keys(verbs) as (keyof typeof verbs)[]) {
    const [description, effect] = verbs[verb];
    partners
      .command(verb)
      .description(description)
      .argument("<id>", "the partner's id")
      .addOption(
        new Option("--yes", "don't ask, even if it has sent something within a day").hideHelp(verb !== "disable"),
      )
      .addOption(byOption())
      .action(async (id, { yes, by }) => {
        const acting = actAs(context, by);
        if (verb === "disable") await confirmIfUsed(context, id, yes);
        const hasChanged = await admitPartner(acting, id, verb);
        printLine(context.stdout, `Partner ${id} is ${hasChanged ? "now" : "already"} ${effect(id)}`);
      });
  }
}

async function confirmIfUsed(context: Context, id: string, isConfirmed: true | undefined): Promise<void> {
  const usedAt = await findRecentUse(context, { id });
  if (usedAt === null) return;
  await confirm(
    context,
    `Partner ${id} sent something at ${toSeconds(usedAt)}. Its senders lose what gets 403; to let them keep it: ` +
      `ops partners hold ${id}. Disable it`,
    isConfirmed,
  );
}
