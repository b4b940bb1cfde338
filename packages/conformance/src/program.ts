import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { CannotCheck } from "./cannot-check.ts";
import { checkReceiver, receiverChecks } from "./receiver/check-receiver.ts";
import { formatReceiverReport } from "./receiver/format-report.ts";
import type { CheckReceiverOptions } from "./receiver/receiver.ts";
import { formatSenderReport } from "./sender/format-report.ts";
import { type PlayReceiverOptions, playReceiver } from "./sender/play-receiver.ts";
import { scenarios } from "./sender/scenarios.ts";

interface Output {
  write(text: string): unknown;
}

interface Surroundings {
  stdout: Output;
  stderr: Output;
  /** Ends a run of `sender`, which then reports what it has seen. */
  signal: AbortSignal;
}

/**
 * Runs one command.
 *
 * @param args without the name of the program
 * @returns the exit code: 0 everything passed, 1 something failed, 2 wrong usage or nothing could be checked
 */
export async function runProgram(args: string[], { stdout, stderr, signal }: Surroundings) {
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
  const done = (hasPassed: boolean) => {
    exitCode = hasPassed ? 0 : 1;
  };
  addReceiverCommand(program, stdout, done);
  addSenderCommand(program, { stdout, stderr, signal }, done);
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

interface ReceiverFlags extends Omit<CheckReceiverOptions, "url" | "lookupUrl"> {
  url: string;
  lookupUrl?: string;
  json: boolean;
}

function addReceiverCommand(program: Command, stdout: Output, done: (hasPassed: boolean) => void): void {
  program
    .command("receiver")
    .description("Send requests to a receiver, and check its answers against every rule of the contract.")
    .requiredOption("--url <url>", "what comes before /booking-event, such as https://bookings.example.com")
    .option("--lookup-url <url>", "the same for questions, if they are answered elsewhere")
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
    .action(async ({ url, lookupUrl, secret, json, ...options }: ReceiverFlags, command: Command) => {
      const report = await checkReceiver({
        ...options,
        url: parseUrl("--url", url, command),
        lookupUrl: lookupUrl === undefined ? undefined : parseUrl("--lookup-url", lookupUrl, command),
        secret: parseSecret(secret, command),
      });
      stdout.write(json ? `${JSON.stringify(report, null, 2)}\n` : formatReceiverReport(report));
      done(report.failed === 0);
    });
}

interface SenderFlags extends Omit<PlayReceiverOptions, "timeoutMs" | "signal"> {
  timeout: number;
  json: boolean;
}

function addSenderCommand(
  program: Command,
  { stdout, stderr, signal }: Surroundings,
  done: (hasPassed: boolean) => void,
): void {
  program
    .command("sender")
    .description("Play a receiver with faults, and check what a sender does about them.")
    .requiredOption("--port <port>", "where to listen; 0 for any free port", parsePort)
    .option("--host <address>", "where to listen", "127.0.0.1")
    .option("--secret <secret>", "the secret that the sender has (default: a random one, which is printed)")
    .option(
      "--speed <factor>",
      "divides how long this program waits, not how long the sender does",
      parseNumber(0.01, 100),
      1,
    )
    .option("--timeout <seconds>", "how long the run may take from the first request on", parseNumber(1, 86_400), 60)
    .option("--json", "print the report as JSON")
    .action(async ({ json, timeout, ...options }: SenderFlags) => {
      const { url, secret, report } = await playReceiver({ ...options, timeoutMs: timeout * 1_000, signal });
      stderr.write(
        `Send ${scenarios.length} events or more, two of them about one booking, to ${url}/booking-event/create/${encodeURIComponent(secret)}\n` +
          "Press Ctrl-C to end the run early.\n",
      );
      const result = await report;
      stdout.write(json ? `${JSON.stringify(result, null, 2)}\n` : formatSenderReport(result));
      done(result.failed === 0 && result.missing === 0 && result.refused.length === 0);
    });
}

const maxPort = 65_535;

function parseNumber(minimum: number, maximum: number): (text: string) => number {
  return (text) => {
    const value = text.trim() === "" ? Number.NaN : Number(text);
    if (value >= minimum && value <= maximum) return value;
    throw new InvalidArgumentError(`Give a number from ${minimum} to ${maximum}.`);
  };
}

function parsePort(text: string): number {
  const port = parseNumber(0, maxPort)(text);
  if (Number.isInteger(port)) return port;
  throw new InvalidArgumentError("Give a whole number.");
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

function parseUrl(flag: string, text: string, command: Command): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol) && !url.pathname.includes("/booking-event")) return url;
  return command.error(`error: ${flag} must be an http or https URL that ends before /booking-event.`);
}

function parseSecret(text: string, command: Command): string {
  if (text.trim() === text && text !== "") return text;
  return command.error("error: --secret must not be empty, and must not start or end with white space.");
}
