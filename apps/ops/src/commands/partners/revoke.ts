import { planRevocation, revokeSecret } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { confirm } from "../../terminal/confirm.ts";
import { printLine } from "../../terminal/print.ts";

export function addRevokeCommand(partners: Command, context: Context): void {
  partners
    .command("revoke")
    .summary("refuse a secret from now on")
    .description(
      "Refuse a secret from now on. It stays in the list. The partner's last valid secret is revoked only if you " +
        "confirm it, because the partner cannot send events without one. The revocation is recorded in Redis, too, so an " +
        "old copy of the partners file does not bring the secret back.",
    )
    .argument("<id>", "the partner's id")
    .argument("<secretId>", "from the list, such as s1")
    .option("--yes", "revoke it without asking, even if it is the last valid one")
    .addHelpText("after", "\nExample:\n  $ ops partners revoke acme s1")
    .action(async (id, secretId, { yes }) => {
      const planned = planRevocation(context, { id, secretId });
      if (planned.wasValid && !planned.hasValidSecret)
        await confirm(
          context,
          `Revoke ${secretId}, the last valid secret of partner ${id}, which then cannot send events`,
          yes,
        );
      const { wasValid, hasValidSecret } = await revokeSecret(context, { id, secretId });
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
