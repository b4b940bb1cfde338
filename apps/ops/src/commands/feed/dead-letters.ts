import {
  describeCount,
  discardReaderLetters,
  type FeedDeadLetter,
  listReaderLetters,
  type NamedReader,
  replayReaderLetters,
  requireLetters,
  toSeconds,
} from "@booking-events/operations";
import { type Command, InvalidArgumentError, Option } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { confirm } from "../../terminal/confirm.ts";
import type { Column } from "../../terminal/format-table.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printJson, printLine, printRows } from "../../terminal/print.ts";
import { referenceColumn } from "../../terminal/reference.ts";

/** Adds the command for readers of the feed, or the same for subscriptions, each of which is a reader. */
export function addDeadLettersCommand(parent: Command, context: Context, what: NamedReader["what"]): void {
  parent
    .command("dead-letters")
    .description(
      `List, replay or discard what a ${what} could not be given: changes that were tried for days, in the order of the ` +
        "feed. Fix the cause, and then replay them: they are tried again at once. What is discarded is not delivered. " +
        "Shows no personal data.",
    )
    .argument("<name>", `the ${what}'s name`)
    .option("--replay <changeId>", "replay this one; may be repeated", collectIds)
    .addOption(
      new Option("--discard <changeId>", "discard this one; may be repeated").argParser(collectIds).conflicts("replay"),
    )
    .addOption(new Option("--replay-all", "replay all").conflicts(["replay", "discard"]))
    .option("--yes", "don't ask for confirmation")
    .addOption(byOption())
    .option(
      "--json",
      "print a JSON array: changeId, bookingId, partner, change, referenceKind, reference, attempts, firstFailedAt, " +
        "lastFailedAt, diedAt, failure; or with an option above, one JSON object: replayed or discarded",
    )
    .action(async (name, options) => {
      const deed = readDeed(options);
      const letters = await listReaderLetters(context, { what, name });
      if (deed === undefined) printRows(context.stdout, columns, letters, { json: options.json, none: noLetters });
      else await act(context, { what, name }, letters, { ...deed, ...options });
    });
}

const noLetters = "No dead letters.";

interface Deed {
  verb: "Replay" | "Discard";
  /** Of changes. Null: all. */
  ids: number[] | null;
}

/** @returns undefined: list them */
function readDeed(options: { replay?: number[]; discard?: number[]; replayAll?: true }): Deed | undefined {
  const { replay, discard, replayAll } = options;
  if (replayAll) return { verb: "Replay", ids: null };
  if (replay !== undefined) return { verb: "Replay", ids: replay };
  return discard && { verb: "Discard", ids: discard };
}

async function act(
  context: Context,
  owner: NamedReader,
  letters: FeedDeadLetter[],
  { verb, ids, yes, by, json }: Deed & { yes?: true; by?: string | undefined; json?: true },
): Promise<void> {
  const acting = actAs(context, by);
  const { name } = owner;
  requireLetters(letters, ids ?? [], name);
  const chosen = describeCount((ids ?? letters).length, "dead letter");
  await confirm(context, `${verb} ${chosen} of ${name}`, yes);
  const count = await (verb === "Discard"
    ? discardReaderLetters(acting, owner, ids ?? [])
    : replayReaderLetters(acting, owner, ids));
  const done = verb === "Discard" ? "discarded" : "replayed";
  if (json) printJson(context.stdout, { [done]: count });
  else printLine(context.stdout, `${describeCount(count, "dead letter")} of ${name}: ${done}.`);
}

function collectIds(text: string, previous: number[] = []): number[] {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError("Give the id of a change, such as 4711.");
  return [...previous, Number(text)];
}

const columns: Column<FeedDeadLetter>[] = [
  { header: "CHANGE ID", value: ({ changeId }) => String(changeId) },
  { header: "DIED", value: ({ diedAt }) => toSeconds(diedAt) },
  { header: "FAILURE", value: ({ failure }) => failure ?? "" },
  { header: "ATTEMPTS", value: ({ attempts }) => String(attempts) },
  { header: "CHANGE", value: ({ change }) => change ?? "?" },
  { header: "PARTNER", value: ({ partner }) => partner ?? "?" },
  referenceColumn,
  { header: "BOOKING ID", value: ({ bookingId }) => bookingId },
];
