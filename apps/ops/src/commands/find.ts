import { type Found, findText } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { notDecoded } from "../terminal/arguments.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import { readLine } from "../terminal/confirm.ts";
import type { Column } from "../terminal/format-table.ts";
import { printJson, printLine, printTable } from "../terminal/print.ts";
import { printable } from "../terminal/printable.ts";
import { describeReference } from "../terminal/reference.ts";

export function addFindCommand(program: Command, context: Context): void {
  program
    .command("find")
    .description(
      "Find what a text leads to, over all partners: a booking's reference, the id of an event or of a request, a guest's " +
        "e-mail address or phone number. It looks at bookings, the log, dead letters, the queue and refused requests.",
    )
    .argument("<text>", "the text; - reads it from stdin, so that no address is left in the shell's history")
    .option(
      "--json",
      "print a JSON object: found (what, by, closeness, partner, referenceKind, reference, eventId, requestId (of a refused request), state), isCut, looked " +
        "(where it looked), unseen (where it could not)",
    )
    .addHelpText(
      "after",
      `
At most 200 are shown. An address or a number is compared as guests find does; a near one may be another guest's. The
queue is read from one end to the other, which takes some seconds for a million events.

Example:
  $ ops find TRIP-1`,
    )
    .action(async (given, { json }) => {
      const text = given === "-" ? ((await readLine(context, "")) ?? "") : given;
      if (text.includes("\ufffd")) throw new CommandFailure(`The text can't be read. ${notDecoded}`, { exitCode: 2 });
      if (text.trim() === "") throw new CommandFailure("The text is empty.", { exitCode: 2 });
      const result = await findText(context, text);
      if (json) printJson(context.stdout, result);
      else if (result.found.length === 0) printLine(context.stdout, "Nothing was found.");
      else printTable(context.stdout, columns, result.found);
      if (json) return;
      for (const looked of result.looked) printLine(context.stderr, `Looked at: ${looked}.`);
      for (const unseen of result.unseen) printLine(context.stderr, printable(`Not looked at: ${unseen}`));
      if (result.isCut) printLine(context.stderr, "There are more.");
    });
}

const columns: Column<Found>[] = [
  { header: "WHAT", value: ({ what, closeness }) => (closeness === "near" ? `${what} (near)` : what) },
  { header: "BY", value: ({ by }) => by },
  { header: "PARTNER", value: ({ partner }) => partner ?? "?" },
  { header: "REFERENCE", value: (found) => (found.reference === null ? "" : describeReference(found)) },
  {
    header: "EVENT ID",
    value: ({ eventId, requestId }) => eventId ?? (requestId === undefined ? "" : `request ${requestId}`),
  },
  { header: "STATE", value: ({ state }) => state ?? "" },
];
