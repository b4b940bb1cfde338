import { type ActingContext, attachDatabase, type DatabaseIdentity, readFedDatabase } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { confirm } from "../../terminal/confirm.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printLine } from "../../terminal/print.ts";

export function addAttachCommand(queue: Command, context: Context): void {
  queue
    .command("attach")
    .description(
      "Let the queue feed the database of DATABASE_URL from now on, and no longer the one that it has fed. The queue " +
        "records the first database that it feeds, and workers, lookups and commands with another one refuse to work: " +
        "its events would be missing in the one that has fed from it. A database that was restored from a backup, and a " +
        "standby, need no such step.",
    )
    .option("--yes", "don't ask for confirmation")
    .addOption(byOption())
    .action(({ yes, by }) => attach(context, actAs(context, by), yes));
}

async function attach(context: Context, acting: ActingContext, isConfirmed: true | undefined): Promise<void> {
  const { identity, fedDatabase: database } = await readFedDatabase(context);
  if (database === null) {
    printLine(context.stdout, "The queue has fed no database yet. The first worker records its own.");
    return;
  }
  if (database === identity.id) {
    printLine(context.stdout, `The queue feeds this database, ${identity.id}, already.`);
    return;
  }
  await confirm(
    context,
    `Let the queue feed the database ${describe(identity)} from now on, and no longer ${database}`,
    isConfirmed,
  );
  await attachDatabase(acting, identity.id);
  printLine(
    context.stdout,
    `The queue feeds the database ${identity.id}. Workers with it apply the events that wait and all that come. ` +
      `Workers with ${database} take none any more.`,
  );
}

function describe({ id, isEmpty }: DatabaseIdentity): string {
  return isEmpty ? `${id}, which is empty,` : id;
}
