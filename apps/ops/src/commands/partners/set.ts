import { describeQuota, setPartner } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printLine } from "../../terminal/print.ts";
import { parseBurst, parseCountry, parseKinds, parseQuota, parseRate } from "./arguments.ts";
import { describeCountry, describeKinds, describeRate } from "./describe-partner.ts";

export function addSetCommand(partners: Command, context: Context): void {
  partners
    .command("set")
    .description(
      "Change a partner's name, the kinds of event that it may send, its rate limit, its quota or its country. The rest " +
        "stays. A country applies to events that are received from then on. The id stays forever, since it is part of " +
        "what identifies bookings: for another one, add a partner, let it send its bookings again, and disable this one.",
    )
    .argument("<id>", "the partner's id")
    .option("--name <name>", "name for display")
    .option("--kinds <list>", "kinds of event that the partner may send", parseKinds)
    .option("--rate <perSecond>", "events per second, on average", parseRate)
    .option("--burst <events>", "events in a burst", parseBurst)
    .option("--quota <bytes>", "bytes of payloads in a day, such as 500MB", parseQuota)
    .option("--country <code>", "where phone numbers without a country code are from, such as GB", parseCountry)
    .option("--no-country", "leave phone numbers without a country code unread")
    .addOption(byOption())
    .addHelpText("after", "\nExample:\n  $ ops partners set acme --rate 500 --burst 1000")
    .action(async (id, { rate, quota, country: given, by, ...others }) => {
      const country = given === false ? null : given;
      const changes = { perSecond: rate, bytesPerDay: quota, country, ...others };
      if (Object.values(changes).every((change) => change === undefined)) {
        throw new CommandFailure("Say what to change: --name, --kinds, --rate, --burst, --quota or --country.", {
          exitCode: 2,
        });
      }
      const partner = await setPartner(actAs(context, by), id, changes);
      const { name, kinds, bytesPerDay } = partner;
      printLine(
        context.stdout,
        `Partner ${id} (${name}) may send ${describeKinds(kinds)}, ${describeRate(partner)}, ` +
          `${describeQuota(bytesPerDay)} a day${describeCountry(partner)}.`,
      );
    });
}
