import { Command, CommanderError, Option } from "commander";
import { CannotCheck, checkReceiver, receiverChecks } from "./receiver/check-receiver.ts";
import { formatReceiverReport } from "./receiver/format-report.ts";
import type { Profile } from "./receiver/receiver.ts";

export interface Output {
  write(text: string): unknown;
}

/**
 * Runs one command.
 *
 * @param args without the name of the program
 * @returns the exit code: 0 everything passed, 1 something failed, 2 wrong usage or nothing could be checked
 */
export async function runProgram(args: string[], { stdout, stderr }: Record<"stdout" | "stderr", Output>) {
  let exitCode: 0 | 1 | 2 = 0;
  const program = new Command("booking-events-conformance")
    .description("Check that a receiver or a sender of booking events keeps to the contract.")
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) })
    .exitOverride()
    .showHelpAfterError("Add --help to see the usage.")
    .addHelpText(
      "after",
      "\nExit codes: 0 everything passed; 1 something failed; 2 wrong usage, or nothing was checked.",
    );
  addReceiverCommand(program, stdout, (failed) => {
    exitCode = failed === 0 ? 0 : 1;
  });
  try {
    await program.parseAsync(args, { from: "user" });
    return exitCode;
  } catch (error) {
    // Commander has printed the message. Only --help has the exit code 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (!(error instanceof CannotCheck)) throw error;
    stderr.write(`${error.message}\n`);
    return 2;
  }
}

interface ReceiverFlags {
  url: string;
  secret: string;
  profile: Profile;
  dryRunOnly: boolean;
  only: string[];
  json: boolean;
}

function addReceiverCommand(program: Command, stdout: Output, done: (failed: number) => void): void {
  program
    .command("receiver")
    .description("Send requests to a receiver, and check its answers against every rule of the contract.")
    .requiredOption("--url <url>", "what comes before /booking-event, such as https://bookings.example.com")
    .addOption(
      new Option("--secret <secret>", "the secret of a partner for tests")
        .env("BOOKING_EVENTS_SECRET")
        .makeOptionMandatory(),
    )
    .addOption(
      new Option("--profile <profile>", "spec: only what the specification says; full: our decisions too")
        .choices(["spec", "full"])
        .default("full"),
    )
    .option("--dry-run-only", "send only dry runs, so that nothing is stored")
    .option("--only <name>", "run the checks whose names start with this; may be repeated", collect)
    .option("--json", "print the report as JSON")
    .addHelpText("after", `\nGroups of checks: ${groupNames().join(", ")}.`)
    .action(async ({ url, secret, json, ...options }: ReceiverFlags, command: Command) => {
      const report = await checkReceiver({
        ...options,
        url: parseUrl(url, command),
        secret: parseSecret(secret, command),
      });
      stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : formatReceiverReport(report));
      done(report.failed);
    });
}

function groupNames(): string[] {
  return [...new Set(receiverChecks.map(({ name }) => name.slice(0, name.indexOf("/") + 1)))];
}

function collect(value: string, previous: string[] = []): string[] {
  return [...previous, value];
}

/*
 * Not by Commander's parsers of arguments, whose messages would repeat the secret, which a URL may contain too.
 */

function parseUrl(text: string, command: Command): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol) && !url.pathname.includes("/booking-event")) return url;
  return command.error("error: --url must be an http or https URL that ends before /booking-event.");
}

function parseSecret(text: string, command: Command): string {
  if (text.trim() === text && text !== "") return text;
  return command.error("error: --secret must not be empty, and must not start or end with white space.");
}
