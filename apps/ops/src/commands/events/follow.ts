import { once } from "node:events";
import { type EventDetails, type EventFilter, followEvents } from "@booking-events/operations";
import type { Context } from "../../context.ts";
import { formatTable } from "../../terminal/format-table.ts";
import { printHeading, widthOf } from "../../terminal/print.ts";
import { toJsonLine } from "../../terminal/printable.ts";
import { columns } from "./columns.ts";

/** Prints the newest events, and then new ones as they are applied. Never returns. */
export async function showAsApplied(context: Context, filter: EventFilter, options: { json: boolean }): Promise<void> {
  context.endWithReader();
  let isFirst = true;
  for await (const events of followEvents(context, filter)) {
    const { header } = formatTable(columns, [], widthOf(context.stdout));
    if (isFirst && !options.json && header !== null) printHeading(context.stdout, header);
    isFirst = false;
    await print(context, events, options);
  }
}

/** Waits for the reader of a pipe. */
async function print({ stdout }: Context, events: EventDetails[], { json }: { json: boolean }): Promise<void> {
  const lines = json ? events.map(toJsonLine) : formatTable(columns, events, widthOf(stdout)).lines;
  for (const line of lines) if (!stdout.write(`${line}\n`)) await once(stdout, "drain");
}
