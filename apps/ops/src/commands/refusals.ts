import { findRefusals, type RecordedRefusal, toSeconds } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { limitOption, partnerOption } from "../terminal/arguments.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import { parsePast } from "../terminal/duration.ts";
import type { Column } from "../terminal/format-table.ts";
import { printPage } from "../terminal/print.ts";

export function addRefusalsCommand(program: Command, context: Context): void {
  const parseTime = (text: string) => parsePast(text, context.now());
  program
    .command("refusals")
    .description(
      "List the requests that ingest refused lately, newest first. The newest 250 of each partner are kept for 7 days, " +
        "and as many of senders without a known secret. Shows no personal data but addresses.",
    )
    .addOption(partnerOption("only requests"))
    .option("--strangers", "only of senders without a known secret")
    .option("--since <time>", "only since then, such as 2026-11-20T12:00:00Z, 02:00 (in UTC) or 1h (ago)", parseTime)
    .option("--until <time>", "only before", parseTime)
    .addOption(limitOption(50, 10_000))
    .option(
      "--json",
      "print a JSON array: requestId, at, partner, secretId, kind, status, code, violations, ip, subject",
    )
    .addHelpText(
      "after",
      `
A partner finds the id of a request in the header X-Request-Id of its answer. Refusals during an outage of Redis, and
most of those that one sender repeats many times a second, are not recorded: see ingest's log and metrics.

Examples:
  $ ops refusals --partner acme --since 1h
  $ ops refusals --json | jq -r '.[].violations[]' | sort | uniq -c`,
    )
    .action(async ({ partner, strangers, since = new Date(0), until, limit, json }) => {
      if (partner !== undefined && strangers) {
        throw new CommandFailure("Senders without a known secret have no partner. Leave out one option.", {
          exitCode: 2,
        });
      }
      const wanted = { partner: strangers ? null : partner, since, until };
      const refusals = await findRefusals(context, wanted);
      printPage(context, columns, refusals, { limit, json, none: "No such refusals are recorded." });
    });
}

const columns: Column<RecordedRefusal>[] = [
  { header: "TIME", value: ({ at }) => toSeconds(at) },
  { header: "STATUS", value: ({ status }) => String(status) },
  { header: "WHY", value: ({ code, violations }) => [code, ...violations].join(" ") },
  { header: "PARTNER", value: ({ partner }) => partner ?? "" },
  { header: "SECRET", value: ({ secretId }) => secretId ?? "" },
  { header: "KIND", value: ({ kind }) => kind ?? "" },
  { header: "ADDRESS", value: ({ ip }) => ip ?? "" },
  { header: "REQUEST ID", value: ({ requestId }) => requestId },
];
