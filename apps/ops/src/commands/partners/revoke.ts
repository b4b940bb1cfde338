import { revokeSecret } from "@booking-events/partners";
import type { Command } from "commander";
import type { Context } from "../../context.ts";
import { printLine } from "../../terminal/print.ts";
import { changeFile } from "./change-file.ts";

export function addRevokeCommand(partners: Command, context: Context): void {
  partners
    .command("revoke")
    .summary("let a secret expire immediately")
    .description("Let a secret expire immediately. It stays in the list.")
    .argument("<id>", "the partner's id")
    .argument("<secretId>", "from the list, such as s1")
    .addHelpText("after", "\nExample:\n  $ npm run ops -- partners revoke acme s1")
    .action((id: string, secretId: string) => revoke(context, id, secretId));
}

async function revoke(context: Context, id: string, secretId: string): Promise<void> {
  const { wasValid, hasValidSecret } = await changeFile(context, (file) =>
    revokeSecret(file, { id, secretId }, context.now()),
  );
  printLine(
    context.stdout,
    wasValid
      ? `Revoked secret ${secretId} of partner ${id}. It is now refused.`
      : `Secret ${secretId} of partner ${id} had already expired. Nothing was changed.`,
  );
  if (!hasValidSecret) {
    printLine(
      context.stderr,
      `Warning: partner ${id} has no valid secret left, and can't send events. ` +
        `For a new one: npm run ops -- partners rotate ${id}`,
    );
  }
}
