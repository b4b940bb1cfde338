import { type Check, runChecks } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context, Output } from "../context.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import { printJson, printLine, printWrapped } from "../terminal/print.ts";
import { printable } from "../terminal/printable.ts";

export function addDoctorCommand(program: Command, context: Context): void {
  program
    .command("doctor")
    .description(
      "Check everything that could lose data or secrets: the settings of Redis and PostgreSQL, clocks, disks, files " +
        "and the expiry of secrets. It changes nothing, and says how to correct what it finds.",
    )
    .option("--json", "print a JSON array: name, state (ok, problem or unknown), detail, why, remedy")
    .addHelpText("after", "\nExit codes: 0: there is no problem; 1: there is one. Unknown: look at it yourself.")
    .action(async ({ json }) => {
      const checks = await runChecks(context);
      if (json) printJson(context.stdout, checks);
      else for (const check of checks) printCheck(context.stdout, check);
      const problems = checks.filter(({ state }) => state === "problem").length;
      if (problems > 0) throw new CommandFailure(`Problems: ${problems}.`);
    });
}

const labels = { ok: "OK", problem: "PROBLEM", unknown: "UNKNOWN" };
const indent = " ".repeat(labels.problem.length + 2);

function printCheck(output: Output, { name, state, detail, why, remedy }: Check): void {
  printWrapped(output, labels[state].padEnd(indent.length), `${name}: ${detail}`);
  if (state !== "ok") printWrapped(output, indent, why);
  // A command is not wrapped, so that it can be copied.
  if (remedy !== null) printLine(output, `${indent}→ ${printable(remedy)}`);
}
