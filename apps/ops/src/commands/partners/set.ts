import { changePartner } from "@booking-events/partners";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { changeFile } from "../../partners-file.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { printLine } from "../../terminal/print.ts";
import { parseBurst, parseKinds, parseRate } from "./arguments.ts";
import { describeKinds, describeRate } from "./describe-partner.ts";

export function addSetCommand(partners: Command, context: Context): void {
  partners
    .command("set")
    .summary("change a partner's name, kinds or rate limit")
    .description("Change a partner's name, the kinds of event that it may send, or its rate limit. The rest stays.")
    .argument("<id>", "the partner's id")
    .option("--name <name>", "name for display")
    .option("--kinds <list>", "kinds of event that the partner may send", parseKinds)
    .option("--rate <perSecond>", "events per second, on average", parseRate)
    .option("--burst <events>", "events in a burst", parseBurst)
    .addHelpText("after", "\nExample:\n  $ npm run ops -- partners set acme --rate 500 --burst 1000")
    .action(async (id, { rate, ...changes }) => {
      if (rate === undefined && Object.keys(changes).length === 0) {
        throw new CommandFailure("Say what to change: --name, --kinds, --rate or --burst.", { exitCode: 2 });
      }
      const { partner } = await changeFile(context, (file) => changePartner(file, { id, perSecond: rate, ...changes }));
      const { name, kinds } = partner;
      printLine(context.stdout, `Partner ${id} (${name}) may send ${describeKinds(kinds)}, ${describeRate(partner)}.`);
    });
}
