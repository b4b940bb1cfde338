import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { addAddCommand } from "./partners/add.ts";
import { addAdmitCommands } from "./partners/admit.ts";
import { addListCommand } from "./partners/list.ts";
import { addRevokeCommand } from "./partners/revoke.ts";
import { addRotateCommand } from "./partners/rotate.ts";
import { addSetCommand } from "./partners/set.ts";
import { addWarningsCommand } from "./partners/warnings.ts";
import { addWeekCommand } from "./partners/week.ts";

export function addPartnersCommands(program: Command, context: Context): void {
  const partners = program
    .command("partners")
    .description(
      "Who may send events, and with which secrets. The partners file (PARTNERS_FILE, ./partners.json by default) " +
        "holds only digests, so a secret is shown once and can't be looked up again. A running ingest picks up " +
        "changes within about a second.",
    );
  addAddCommand(partners, context);
  addListCommand(partners, context);
  addSetCommand(partners, context);
  addRotateCommand(partners, context);
  addRevokeCommand(partners, context);
  addAdmitCommands(partners, context);
  addWarningsCommand(partners, context);
  addWeekCommand(partners, context);
}
