import {
  type Counts,
  type Erased,
  eraseGuest,
  type Findings,
  findGuestEverywhere,
  isNothing,
  rewriteTables,
} from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { parseNote } from "../../terminal/arguments.ts";
import { confirm } from "../../terminal/confirm.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printLine } from "../../terminal/print.ts";
import { printFound } from "./find.ts";
import { addSearchOptions, readSearch, type SearchOptions } from "./search.ts";

export function addEraseCommand(guests: Command, context: Context): void {
  addSearchOptions(guests.command("erase"))
    .description(
      "Erase the bookings of a guest: their content, references and idempotency keys in the log, the bookings, the " +
        "feed, the dead letters and the queue. Each booking leaves a row that only a keyed hash identifies, so that " +
        "a late event does not bring it back. Readers of the feed get a change. Near misses, such as a phone number " +
        "without a country code, are listed and not erased. If this is interrupted, run it again.",
    )
    .requiredOption("--reason <text>", "why; recorded, so it must not name the guest", parseNote)
    .addOption(byOption())
    .option("--dry-run", "show what would be erased, and erase nothing")
    .option("--rewrite", "also rewrite the tables, which removes old row versions; locks them while it does")
    .option("--yes", "don't ask for confirmation")
    .addHelpText(
      "after",
      `
Examples:
  $ ops guests erase --email ada@example.com --reason "request 4711" --dry-run
  $ ops guests erase --reference TRIP-1 --partner acme --reason "request 4711"`,
    )
    .action((options: EraseOptions) => erase(context, options));
}

interface EraseOptions extends SearchOptions {
  reason: string;
  by?: string | undefined;
  dryRun?: true;
  rewrite?: true;
  yes?: true;
}

async function erase(context: Context, options: EraseOptions): Promise<void> {
  const search = await readSearch(context, options);
  const found = await findGuestEverywhere(context, search);
  printFound(context.stdout, found, true);
  if (!isNothing(found.near))
    printLine(
      context.stdout,
      "Near misses are not erased. Erase those that are the guest's by --partner and --reference.",
    );
  if (options.dryRun) return;
  const acting = actAs(context, options.by);
  if (!isNothing(found.exact)) await confirm(context, describeErasure(found.exact), options.yes);
  const { counts, appendOnlyFiles } = await eraseGuest(acting, search, found.exact, options);
  if (counts !== null) printCounts(context, counts);
  printRewriting(context, appendOnlyFiles);
  if (options.rewrite) {
    await rewriteTables(acting);
    printLine(context.stdout, "PostgreSQL has rewritten its tables.");
    return;
  }
  printLine(
    context.stdout,
    "PostgreSQL's files have old versions of the rows until it uses their space again. --rewrite removes them now.",
  );
}

function describeErasure({ bookings, letters, queued }: Findings): string {
  const counts = `${bookings.length} bookings, ${letters.length} dead letters and ${queued.length} events in the queue`;
  return `Erase ${counts} for good`;
}

function printCounts({ stdout, stderr }: Context, counts: Counts): void {
  const { bookings, events, deadLetters, jobs, held } = counts;
  printLine(
    stdout,
    `Erased ${bookings} bookings with ${events} events, ${deadLetters} dead letters and ${jobs} events in the queue.`,
  );
  if (held > 0)
    printLine(
      stderr,
      `Workers hold ${held} more events. Run this again in a minute: they are in Redis' append-only file until then.`,
    );
}

function printRewriting({ stdout, stderr }: Context, { problem, replicas }: Erased["appendOnlyFiles"]): void {
  if (problem === undefined) printLine(stdout, "Redis has rewritten its append-only file.");
  else
    printLine(
      stderr,
      `Redis' append-only file still has the events (${problem}). Let its operator run: redis-cli BGREWRITEAOF`,
    );
  const failed = replicas.filter((replica) => replica.problem !== undefined);
  if (replicas.length > 0)
    printLine(stdout, `${replicas.length - failed.length} of ${replicas.length} replicas have rewritten theirs.`);
  for (const replica of failed)
    printLine(
      stderr,
      `The append-only file of the replica ${replica.host}:${replica.port} may still have the events ` +
        `(${replica.problem}). Let its operator run: redis-cli -h ${replica.host} -p ${replica.port} BGREWRITEAOF`,
    );
}
