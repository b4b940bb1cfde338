import { addPartner, defaultBytesPerDay, describeQuota, partnersPath } from "@booking-events/operations";
import { eventKinds } from "@booking-events/schema";
import { type Command, Option } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { parseExpiry } from "../../terminal/duration.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printJson, printLine } from "../../terminal/print.ts";
import { parseBurst, parseCountry, parseKinds, parseQuota, parseRate } from "./arguments.ts";
import { describeExpiry, printSecret } from "./print-secret.ts";

const defaultPerSecond = 200;
const burstSeconds = 2;

export function addAddCommand(partners: Command, context: Context): void {
  partners
    .command("add")
    .description(
      "Add a partner with a secret of 256 random bits, and show the secret once. The first partner creates the " +
        "partners file, which only its owner can read. Later changes keep its owner and permissions.",
    )
    .argument("<id>", "lower-case letters, digits, - and _")
    .option("--name <name>", "name for display (default: the id)")
    .addOption(
      new Option("--kinds <list>", "kinds of event that the partner may send")
        .argParser(parseKinds)
        .default([...eventKinds], eventKinds.join(",")),
    )
    .option("--rate <perSecond>", "events per second, on average", parseRate, defaultPerSecond)
    .option("--burst <events>", "events in a burst (default: twice the rate)", parseBurst)
    .addOption(
      new Option("--quota <bytes>", "bytes of payloads in a day, such as 500MB")
        .argParser(parseQuota)
        .default(defaultBytesPerDay, describeQuota(defaultBytesPerDay)),
    )
    .option("--country <code>", "where phone numbers without a country code are from, such as GB", parseCountry)
    .option("--test", "a test partner: its bookings are apart from all others, and removed after seven days")
    .option("--expires <when>", "when the secret expires: a time or a duration", (text) =>
      parseExpiry(text, context.now()),
    )
    .addOption(byOption())
    .option("--json", "print one JSON object: partner, secretId, secret, expiresAt")
    .addHelpText(
      "after",
      `
Examples:
  $ ops partners add acme --name "Acme Travel"
  $ ops partners add acme-test --test
  $ ops partners add acme --kinds create,update --rate 50 --expires 90d
  $ ops partners add acme --json | jq -r .secret`,
    )
    .action(async (id, options) => {
      const {
        name = id,
        kinds,
        country,
        test,
        rate: perSecond,
        quota: bytesPerDay,
        expires: expiresAt = null,
      } = options;
      const { burst = Math.max(1, Math.ceil(perSecond * burstSeconds)) } = options;
      const limits = { rateLimit: { perSecond, burst }, bytesPerDay };
      const partner = { id, name, kinds: [...kinds], ...limits, country, test, expiresAt };
      const { added, isNewFile } = await addPartner(actAs(context, options.by), partner);
      if (isNewFile) {
        printLine(
          context.stderr,
          `Created ${partnersPath(context)}, which only this user can read. If ingest runs as another user, change the owner (chown). ` +
            "Later changes keep the file's owner and permissions.",
        );
      }
      if (options.json) {
        const expiry = expiresAt === null ? {} : { expiresAt };
        printJson(context.stdout, { partner: id, ...added, ...expiry });
        return;
      }
      const heading = `Added ${test ? "test " : ""}partner ${id} with the secret ${added.secretId}, which ${describeExpiry(expiresAt)}:`;
      printSecret(context, heading, added, partner.kinds);
    });
}
