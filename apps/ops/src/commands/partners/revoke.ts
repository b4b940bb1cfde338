import { findRecentUse, planRevocation, revokeSecret, toSeconds } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { confirm } from "../../terminal/confirm.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printLine } from "../../terminal/print.ts";

export function addRevokeCommand(partners: Command, context: Context): void {
  partners
    .command("revoke")
    .description(
      "Refuse a secret from now on. It stays in the list. The partner's last valid secret, and one that was " +
        "used within a day, is revoked only if you confirm it. The revocation is recorded in Redis, too, so an " +
        "old copy of the partners file does not bring the secret back.",
    )
    .argument("<id>", "the partner's id")
    .argument("<secretId>", "from the list, such as s1")
    .option("--yes", "revoke it without asking")
    .addOption(byOption())
    .addHelpText("after", "\nExample:\n  $ ops partners revoke acme s1")
    .action(async (id, secretId, { yes, by }) => {
      const acting = actAs(context, by);
      const planned = planRevocation(context, { id, secretId });
      const usedAt = planned.wasValid ? await findRecentUse(context, { id, secretId }) : null;
      const lastUse = usedAt === null ? "" : `, which was used at ${toSeconds(usedAt)}`;
      const isLast = planned.wasValid && !planned.hasValidSecret;
      const what = isLast ? `${secretId}, the last valid secret of partner ${id}` : `${secretId} of partner ${id}`;
      const effect = isLast ? ", which then cannot send events" : "";
      if (isLast || usedAt !== null) await confirm(context, `Revoke ${what}${lastUse}${effect}`, yes);
      const { wasValid, hasValidSecret } = await revokeSecret(acting, { id, secretId });
      printLine(
        context.stdout,
        wasValid
          ? `Revoked secret ${secretId} of partner ${id}. It is now refused.`
          : `Secret ${secretId} of partner ${id} was not valid any more. The file was not changed.`,
      );
      if (!hasValidSecret) {
        printLine(
          context.stderr,
          `Warning: partner ${id} has no valid secret left, and can't send events. ` +
            `For a new one: ops partners rotate ${id}`,
        );
      }
    });
}
