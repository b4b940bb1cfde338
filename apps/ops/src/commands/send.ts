import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { parseEnvironment, variables } from "@booking-events/runtime";
import { type EventKind, eventKinds } from "@booking-events/schema";
import { Argument, type Command, InvalidArgumentError } from "commander";
import type { Context } from "../context.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import { printLine } from "../terminal/print.ts";
import { printable } from "../terminal/printable.ts";

const secretVariable = "BOOKING_EVENTS_SECRET";
const answerTimeoutMs = 15_000;
const maxAnswerCharacters = 20_000;

export function addSendCommand(program: Command, context: Context): void {
  program
    .command("send")
    .summary("post a sample event and print the answer")
    .description(
      "Post an event as a partner would, and print the answer. Exit code 0: it was accepted.\n\n" +
        "The file's bytes are sent as they are, whatever they hold. Only of a sample, a JSON object with an object at " +
        "payload such as those in packages/schema/examples, the payload alone is sent, or its body if it has one.",
    )
    .addArgument(new Argument("<kind>", "what the event tells of its booking").choices(eventKinds))
    .argument("<file>", "JSON")
    .option("--secret <secret>", `the partner's secret, or - to read it from standard input`)
    .option("--url <url>", "where ingest is; default: http://127.0.0.1 with the port in PORT, or 8080", parseUrl)
    .option("--form", "send it as application/x-www-form-urlencoded")
    .option("--dry-run", "have it checked and not accepted")
    .option("--idempotency-key <key>", "sent as the header of this name")
    .addHelpText(
      "after",
      `
A secret on the command line stays in the shell's history, and other users of the machine can see it.
It is better read: --secret - asks for it, or takes it from a pipe. So is ${secretVariable},
which is used if --secret is not given.

Examples:
  $ npm run ops -- send create packages/schema/examples/full-booking.json --secret - --dry-run
  $ read -rs ${secretVariable} && export ${secretVariable}
  $ npm run ops -- send delete trip.json --url https://bookings.example.com`,
    )
    .action((kind: EventKind, file: string, options: SendOptions) => send(context, kind, file, options));
}

interface SendOptions {
  secret?: string;
  url?: URL;
  form?: true;
  dryRun?: true;
  idempotencyKey?: string;
}

async function send(context: Context, kind: EventKind, file: string, options: SendOptions): Promise<void> {
  const body = await readBody(file, options.form === true);
  const base = options.url ?? defaultUrl(context);
  const secret = await readSecret(context, options.secret);
  if (base.protocol === "http:" && !isLoopback(base)) {
    printLine(context.stderr, `Warning: the secret and the event go to ${base.host} unencrypted.`);
  }
  const startedAtMs = performance.now();
  const response = await post(base, kind, secret, body, options);
  const durationMs = Math.round(performance.now() - startedAtMs);
  const retryAfter = response.headers.get("retry-after");
  const retry = retryAfter === null ? "" : `, Retry-After: ${printable(retryAfter)}`;
  printLine(context.stdout, `${response.status} ${printable(response.statusText)}, after ${durationMs} ms${retry}`);
  // Some servers repeat the path in their error pages.
  const text = response.text.replaceAll(secret, "{secret}").slice(0, maxAnswerCharacters);
  for (const line of text.trimEnd().split("\n")) printLine(context.stdout, printable(line));
  if (response.status !== 200) throw new CommandFailure("The event was not accepted.");
}

interface Body {
  type: string;
  content: string | Buffer<ArrayBuffer>;
}

const json = "application/json";
const form = "application/x-www-form-urlencoded";

async function readBody(file: string, asForm: boolean): Promise<Body> {
  const bytes = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw new CommandFailure(`The file ${file} can't be read (${error.code}).`, { cause: error });
  });
  const value = parseJson(bytes);
  const sample = isObject(value) && isObject(value["payload"]) ? value : undefined;
  if (asForm) return { type: form, content: toForm(sample?.["payload"] ?? value, file) };
  if (sample === undefined) return { type: json, content: bytes };
  const { contentType, body, payload } = sample;
  if (typeof body !== "string") return { type: json, content: JSON.stringify(payload) };
  return { type: typeof contentType === "string" ? contentType : json, content: body };
}

/** What is no JSON is sent all the same, so that the answer to it can be seen. */
function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}

function toForm(value: unknown, file: string): string {
  if (!isObject(value)) throw new CommandFailure(`The file ${file} holds no JSON object to make a form of.`);
  const fields = Object.entries(value);
  const unfit = fields.filter(([, field]) => typeof field !== "string").map(([name]) => name);
  if (unfit.length > 0) {
    throw new CommandFailure(`A form holds texts only, which these fields are not: ${printable(unfit.join(", "))}.`);
  }
  return new URLSearchParams(fields as [string, string][]).toString();
}

async function post(base: URL, kind: EventKind, secret: string, body: Body, options: SendOptions) {
  const folder = base.pathname.replace(/\/$/, "");
  const url = new URL(`${folder}/booking-event/${kind}/${encodeURIComponent(secret)}`, base);
  const headers = new Headers({ "content-type": body.type });
  if (options.dryRun) headers.set("x-dry-run", "true");
  if (options.idempotencyKey !== undefined) setKey(headers, options.idempotencyKey);
  try {
    const response = await fetch(url, {
      method: "POST",
      headers,
      body: body.content,
      // The secret goes nowhere else.
      redirect: "manual",
      signal: AbortSignal.timeout(answerTimeoutMs),
    });
    return {
      status: response.status,
      statusText: response.statusText,
      headers: response.headers,
      text: await response.text(),
    };
  } catch (error) {
    throw describeFetchError(error, base);
  }
}

function setKey(headers: Headers, key: string): void {
  try {
    headers.set("idempotency-key", key);
  } catch (error) {
    throw new CommandFailure("The idempotency key holds characters that no header can.", { exitCode: 2, cause: error });
  }
}

/** An error's own message may hold the URL, and so the secret. */
function describeFetchError(error: unknown, base: URL): CommandFailure {
  if (error instanceof Error && error.name === "TimeoutError") {
    return new CommandFailure(
      `No answer from ${base.origin} within ${answerTimeoutMs / 1_000} s. The event may have been accepted all the same.`,
    );
  }
  const code = error instanceof Error ? (error.cause as NodeJS.ErrnoException | undefined)?.code : undefined;
  return new CommandFailure(
    `${base.origin} can't be reached (${code ?? "connection failed"}). Check that ingest runs there, or give its --url.`,
  );
}

async function readSecret(context: Context, option: string | undefined): Promise<string> {
  const secret = option === "-" ? await readLine(context) : (option ?? context.environment[secretVariable] ?? "");
  if (secret.trim() !== "") return secret.trim();
  throw new CommandFailure(`A secret is needed: --secret - reads it from standard input, or set ${secretVariable}.`, {
    exitCode: 2,
  });
}

/** On a terminal, what is typed is not shown. */
async function readLine({ stdin, stderr }: Context): Promise<string> {
  const terminal = stdin.isTTY === true;
  if (terminal) stderr.write("Secret (not shown): ");
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: nowhere, terminal });
  const { promise, resolve } = Promise.withResolvers<string>();
  lines.once("line", resolve);
  lines.once("close", () => resolve(""));
  const line = await promise;
  lines.close();
  if (terminal) printLine(stderr);
  return line;
}

function defaultUrl({ environment }: Context): URL {
  const { PORT } = parseEnvironment({ PORT: variables.PORT }, environment);
  return new URL(`http://127.0.0.1:${PORT}`);
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol) || url.username !== "" || url.password !== "") {
    throw new InvalidArgumentError("Give a URL such as https://bookings.example.com, without a user or password.");
  }
  return url;
}

function isLoopback({ hostname }: URL): boolean {
  return hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
