import { readPartnersFile } from "@booking-events/partners";
import { readWarningCounts, type WarningCount, warningDaysKept } from "@booking-events/queue";
import type { Command } from "commander";
import type { Context } from "../../context.ts";
import { describeRedisError, readRedisSettings } from "../../queue.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printJson, printLine, printTable } from "../../terminal/print.ts";
import { partnersPath } from "./change-file.ts";

export function addWarningsCommand(partners: Command, context: Context): void {
  partners
    .command("warnings")
    .summary("what a partner's accepted events were warned of")
    .description(
      `Count the warnings that a partner got with its events and dry runs in the last ${warningDaysKept} days, in UTC ` +
        "and with today, most frequent first. Shows no value and no name that the partner chose.",
    )
    .argument("<id>", "the partner's id")
    .option("--json", "print a JSON array: field, code, count, lastDay")
    .addHelpText(
      "after",
      `
similar-name: an unlisted field resembles this one. ingest_unknown_fields_total has its name.
unreadable-…: the value was kept, but booking_details shows null. bookings unreadable counts the bookings.

Counts of some seconds are missing if Redis was slow or down. ingest_warnings_total has all.`,
    )
    .action((id: string, { json }: { json?: true }) => show(context, id, json === true));
}

async function show(context: Context, partner: string, json: boolean): Promise<void> {
  const path = partnersPath(context);
  if (!readPartnersFile(path).partners.some(({ id }) => id === partner)) {
    throw new CommandFailure(`There is no partner ${partner} in ${path}.`);
  }
  const totals = addUp(await read(context, partner));
  if (json) printJson(context.stdout, totals);
  else if (totals.length === 0) printLine(context.stdout, `${partner} got no warnings in ${warningDaysKept} days.`);
  else printTable(context.stdout, columns, totals);
}

async function read({ environment, now }: Context, partner: string): Promise<WarningCount[]> {
  const redis = readRedisSettings(environment);
  try {
    return await readWarningCounts({ ...redis, partner, now: now() });
  } catch (error) {
    throw describeRedisError(error, redis.redisServers);
  }
}

interface Total {
  field: string;
  code: string;
  count: number;
  lastDay: string;
}

/** @param counts newest day first */
function addUp(counts: WarningCount[]): Total[] {
  const totals = new Map<string, Total>();
  for (const { field, code, count, day } of counts) {
    const total = totals.get(`${field} ${code}`) ?? { field, code, count: 0, lastDay: day };
    totals.set(`${field} ${code}`, { ...total, count: total.count + count });
  }
  return [...totals.values()].sort((one, other) => other.count - one.count);
}

const columns: Column<Total>[] = [
  { header: "FIELD", value: ({ field }) => field },
  { header: "WARNING", value: ({ code }) => code },
  { header: "COUNT", value: ({ count }) => String(count) },
  { header: "LAST DAY", value: ({ lastDay }) => lastDay },
];
