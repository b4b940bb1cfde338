import { rotateSecret, toSeconds } from "@booking-events/operations";
import { type Command, Option } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { parseDurationMs, parseExpiry } from "../../terminal/duration.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printJson, printLine } from "../../terminal/print.ts";
import { describeExpiry, printSecret } from "./print-secret.ts";

const defaultOverlap = "24h";

export function addRotateCommand(partners: Command, context: Context): void {
  partners
    .command("rotate")
    .description(
      "Add a secret, show it once, and let the partner's other secrets expire after the overlap. Until then all of " +
        "them work, so the partner can switch without an interruption.",
    )
    .argument("<id>", "the partner's id")
    .addOption(
      new Option("--overlap <duration>", "how long the old secrets stay valid, such as 30m, 7d or 0")
        .argParser(parseDurationMs)
        .default(parseDurationMs(defaultOverlap), defaultOverlap),
    )
    .option("--expires <when>", "when the new secret expires: a time or a duration", (text) =>
      parseExpiry(text, context.now()),
    )
    .addOption(byOption())
    .option("--json", "print one JSON object: partner, secretId, secret, expiresAt, previousSecretsExpireAt")
    .addHelpText(
      "after",
      `
Examples:
  $ ops partners rotate acme --overlap 7d --expires 90d
  $ ops partners rotate acme --overlap 0     # the old secret leaked`,
    )
    .action(async (id, options) => {
      const { overlap: overlapMs, expires: expiresAt = null } = options;
      const { added, previousSecretsExpireAt, partner } = await rotateSecret(actAs(context, options.by), {
        id,
        overlapMs,
        expiresAt,
      });
      if (!partner.enabled) {
        printLine(context.stderr, `Note: partner ${id} is disabled. To enable it: ops partners enable ${id}`);
      }
      if (options.json) {
        const expiry = expiresAt === null ? {} : { expiresAt };
        printJson(context.stdout, { partner: id, ...added, ...expiry, previousSecretsExpireAt });
        return;
      }
      const heading = `Partner ${id} has a new secret ${added.secretId}, which ${describeExpiry(expiresAt)}:`;
      printSecret(context, heading, added, partner.kinds);
      printLine(context.stdout);
      printLine(context.stdout, describePrevious(previousSecretsExpireAt, context.now()));
    });
}

function describePrevious(expireAt: Date | null, now: Date): string {
  if (expireAt === null) return "The partner has no other valid secret.";
  if (expireAt <= now) return "All other secrets of the partner are now refused.";
  return `The partner's previous secrets are valid until ${toSeconds(expireAt)}.`;
}
