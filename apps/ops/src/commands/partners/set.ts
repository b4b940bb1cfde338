import { changePartner } from "@booking-events/partners";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { changeFile } from "../../partners-file.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { printLine } from "../../terminal/print.ts";
import { parseBurst, parseKinds, parseQuota, parseRate } from "./arguments.ts";
import { describeKinds, describeQuota, describeRate } from "./describe-partner.ts";

export function addSetCommand(partners: Command, context: Context): void {
  partners
    .command("set")
    .summary("change a partner's name, kinds, rate limit or quota")
    .description(
      "Change a partner's name, the kinds of event that it may send, its rate limit or its quota. The rest stays.",
    )
    .argument("<id>", "the partner's id")
    .option("--name <name>", "name for display")
    .option("--kinds <list>", "kinds of event that the partner may send", parseKinds)
    .option("--rate <perSecond>", "events per second, on average", parseRate)
    .option("--burst <events>", "events in a burst", parseBurst)
    .option("--quota <bytes>", "bytes of payloads in a day, such as 500MB", parseQuota)
    .addHelpText("after", "\nExample:\n  $ npm run ops -- partners set acme --rate 500 --burst 1000")
    .action(async (id, { rate, quota, ...changes }) => {
      if (rate === undefined && quota === undefined && Object.keys(changes).length === 0) {
        throw new CommandFailure("Say what to change: --name, --kinds, --rate, --burst or --quota.", { exitCode: 2 });
      }
      const { partner } = await changeFile(context, (file) =>
        changePartner(file, { id, perSecond: rate, bytesPerDay: quota, ...changes }),
      );
      const { name, kinds, bytesPerDay } = partner;
      printLine(
        context.stdout,
        `Partner ${id} (${name}) may send ${describeKinds(kinds)}, ${describeRate(partner)}, ` +
          `${describeQuota(bytesPerDay)} a day.`,
      );
    });
}
