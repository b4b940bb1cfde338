import {
  addPartner,
  changePartner,
  changePartnersFile,
  isValid,
  type NewSecret,
  type Partner,
  type PartnerSecret,
  type PartnersFile,
  readPartnersFile,
  revokeSecret,
  rotateSecret,
  setEnabled,
} from "@booking-events/partners";
import { type LastUses, readLastUses } from "@booking-events/queue";
import { parseEnvironment, variables } from "@booking-events/runtime";
import { type EventKind, eventKinds } from "@booking-events/schema";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Context } from "../context.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import { parseDurationMs, parseExpiry } from "../terminal/duration.ts";
import type { Column } from "../terminal/format-table.ts";
import { printJson, printLine, printTable, toSeconds } from "../terminal/print.ts";

const defaultPerSecond = 200;
const burstSeconds = 2;
const defaultOverlap = "24h";

export function addPartnersCommands(program: Command, context: Context): void {
  const partners = program
    .command("partners")
    .summary("who may send events, and with which secrets")
    .description(
      "Who may send events, and with which secrets. They stand in the partners file (PARTNERS_FILE, ./partners.json " +
        "by default), which holds digests only: a secret is shown once, and can't be looked up again. A running " +
        "ingest takes changes over within about a second.",
    );

  partners
    .command("add")
    .summary("add a partner and show its secret, once")
    .description(
      "Add a partner with a secret of 256 random bits, and show it once. The first partner creates the partners file, " +
        "readable by its owner only; later changes keep owner and permissions as they are.",
    )
    .argument("<id>", "lower-case letters, digits, - and _")
    .option("--name <name>", "for people; the id by default")
    .addOption(
      new Option("--kinds <list>", "the kinds of event that the partner may send")
        .argParser(parseKinds)
        .default([...eventKinds], eventKinds.join(",")),
    )
    .option("--rate <perSecond>", "events a second, averaged over time", parseRate, defaultPerSecond)
    .option("--burst <events>", "events at once; twice the rate by default", parseBurst)
    .option("--expires <when>", "until when the secret is valid: a time or a duration", (text) =>
      parseExpiry(text, context.now()),
    )
    .option("--json", "print one JSON object: partner, secretId, secret, expiresAt")
    .addHelpText(
      "after",
      `
Examples:
  $ npm run ops -- partners add acme --name "Acme Travel"
  $ npm run ops -- partners add acme --kinds create,update --rate 50 --expires 90d
  $ npm run -s ops -- partners add acme --json | jq -r .secret`,
    )
    .action((id: string, options: AddOptions) => add(context, id, options));

  partners
    .command("list")
    .summary("list the partners and the state of their secrets")
    .description(
      "List the partners and the state of their secrets. When each was last used is told by Redis, if REDIS_URL is set; " +
        "ingest writes it down every few seconds.",
    )
    .option("--json", "print a JSON array: id, name, enabled, kinds, rateLimit, secrets")
    .action((options: { json?: true }) => list(context, options.json === true));

  partners
    .command("set")
    .summary("change a partner's name, kinds or limit")
    .description("Change a partner's name, the kinds of event that it may send, or its limit. The rest stays.")
    .argument("<id>", "the partner's id")
    .option("--name <name>", "for people")
    .option("--kinds <list>", "the kinds of event that the partner may send", parseKinds)
    .option("--rate <perSecond>", "events a second, averaged over time", parseRate)
    .option("--burst <events>", "events at once", parseBurst)
    .addHelpText("after", "\nExample:\n  $ npm run ops -- partners set acme --rate 500 --burst 1000")
    .action((id: string, options: SetOptions) => set(context, id, options));

  partners
    .command("rotate")
    .summary("give a partner another secret; the old one stays valid for a while")
    .description(
      "Add a secret, show it once, and let the partner's other secrets expire when the overlap is over. Until then " +
        "either works, so that the partner can change over without an interruption.",
    )
    .argument("<id>", "the partner's id")
    .addOption(
      new Option("--overlap <duration>", "how long the old secrets stay valid, such as 30m, 7d or 0")
        .argParser(parseDurationMs)
        .default(parseDurationMs(defaultOverlap), defaultOverlap),
    )
    .option("--expires <when>", "until when the new secret is valid: a time or a duration", (text) =>
      parseExpiry(text, context.now()),
    )
    .option("--json", "print one JSON object: partner, secretId, secret, expiresAt, previousSecretsExpireAt")
    .addHelpText(
      "after",
      `
Examples:
  $ npm run ops -- partners rotate acme --overlap 7d --expires 90d
  $ npm run ops -- partners rotate acme --overlap 0     # the old secret leaked`,
    )
    .action((id: string, options: RotateOptions) => rotate(context, id, options));

  partners
    .command("revoke")
    .summary("let a secret expire at once")
    .description("Let a secret expire at once. Its record stays in the list.")
    .argument("<id>", "the partner's id")
    .argument("<secretId>", "from the list, such as s1")
    .addHelpText("after", "\nExample:\n  $ npm run ops -- partners revoke acme s1")
    .action((id: string, secretId: string) => revoke(context, id, secretId));

  partners
    .command("disable")
    .summary("refuse a partner's events")
    .description("Refuse a partner's events, whatever the secret, until it is enabled again.")
    .argument("<id>", "the partner's id")
    .action((id: string) => enable(context, id, false));

  partners
    .command("enable")
    .summary("accept a disabled partner's events again")
    .description("Accept a disabled partner's events again.")
    .argument("<id>", "the partner's id")
    .action((id: string) => enable(context, id, true));
}

interface AddOptions {
  name?: string;
  kinds: EventKind[];
  rate: number;
  burst?: number;
  expires?: Date;
  json?: true;
}

interface RotateOptions {
  overlap: number;
  expires?: Date;
  json?: true;
}

interface SetOptions {
  name?: string;
  kinds?: EventKind[];
  rate?: number;
  burst?: number;
}

async function add(context: Context, id: string, options: AddOptions): Promise<void> {
  const { expires: expiresAt = null } = options;
  const partner = {
    id,
    name: options.name ?? id,
    kinds: options.kinds,
    rateLimit: {
      perSecond: options.rate,
      burst: options.burst ?? Math.max(1, Math.ceil(options.rate * burstSeconds)),
    },
    expiresAt,
  };
  const path = partnersPath(context);
  const { added, isNew } = await change(context, (file) => addPartner(file, partner, context.now()), true);
  if (isNew) {
    printLine(
      context.stderr,
      `Created ${path}, which only this user may read. If ingest runs as another user, give the file to that user ` +
        "(chown): later changes keep its owner and permissions.",
    );
  }
  if (options.json) {
    const expiry = expiresAt === null ? {} : { expiresAt };
    printJson(context.stdout, { partner: id, ...added, ...expiry });
    return;
  }
  const heading = `Added partner ${id}. Its secret ${added.secretId}, which ${describeExpiry(expiresAt)}:`;
  printSecret(context, heading, added, partner.kinds);
}

async function set(context: Context, id: string, { rate, ...changes }: SetOptions): Promise<void> {
  if (rate === undefined && Object.keys(changes).length === 0) {
    throw new CommandFailure("Say what to change: --name, --kinds, --rate or --burst.", { exitCode: 2 });
  }
  const { partner } = await change(context, (file) => changePartner(file, { id, perSecond: rate, ...changes }));
  const { name, kinds } = partner;
  printLine(context.stdout, `Partner ${id} (${name}) may send ${describeKinds(kinds)}, ${describeRate(partner)}.`);
}

async function rotate(context: Context, id: string, options: RotateOptions): Promise<void> {
  const { overlap: overlapMs, expires: expiresAt = null } = options;
  const { added, previousSecretsExpireAt, file } = await change(context, (before) =>
    rotateSecret(before, { id, overlapMs, expiresAt }, context.now()),
  );
  const partner = file.partners.find((candidate) => candidate.id === id);
  if (partner?.enabled === false) {
    printLine(context.stderr, `Note: partner ${id} is disabled. To let it in: npm run ops -- partners enable ${id}`);
  }
  if (options.json) {
    const expiry = expiresAt === null ? {} : { expiresAt };
    printJson(context.stdout, { partner: id, ...added, ...expiry, previousSecretsExpireAt });
    return;
  }
  const heading = `The new secret ${added.secretId} of partner ${id}, which ${describeExpiry(expiresAt)}:`;
  printSecret(context, heading, added, partner?.kinds ?? []);
  printLine(context.stdout);
  printLine(context.stdout, describePrevious(previousSecretsExpireAt, context.now()));
}

function describeExpiry(expiresAt: Date | null): string {
  return expiresAt === null ? "does not expire" : `expires at ${toSeconds(expiresAt)}`;
}

function describePrevious(expireAt: Date | null, now: Date): string {
  if (expireAt === null) return "No other secret of the partner is valid.";
  if (expireAt <= now) return "All other secrets of the partner are refused from now on.";
  return `The partner's previous secrets are valid until ${toSeconds(expireAt)}, and refused from then on.`;
}

async function revoke(context: Context, id: string, secretId: string): Promise<void> {
  const { wasValid, hasValidSecret } = await change(context, (file) =>
    revokeSecret(file, { id, secretId }, context.now()),
  );
  printLine(
    context.stdout,
    wasValid
      ? `Revoked secret ${secretId} of partner ${id}: it is refused from now on.`
      : `Secret ${secretId} of partner ${id} had expired already. Nothing was changed.`,
  );
  if (!hasValidSecret) {
    printLine(
      context.stderr,
      `Warning: partner ${id} has no valid secret left and can't send events. For a new one: npm run ops -- partners rotate ${id}`,
    );
  }
}

async function enable(context: Context, id: string, enabled: boolean): Promise<void> {
  const { before, file } = await change(context, (old) => ({ before: old, file: setEnabled(old, { id, enabled }) }));
  const state = enabled ? "enabled" : "disabled";
  const effect = enabled ? "its events are accepted" : "its events are refused, whatever the secret";
  printLine(
    context.stdout,
    file === before ? `Partner ${id} was ${state} already.` : `Partner ${id} is ${state} now: ${effect}.`,
  );
}

async function list(context: Context, json: boolean): Promise<void> {
  const path = partnersPath(context);
  const { partners } = readPartnersFile(path);
  const now = context.now();
  const lastUses = await readLastUsesIfPossible(context);
  if (json) {
    const shown = partners.map((partner) => withoutDigests(partner, now, lastUses));
    printJson(context.stdout, shown);
  } else if (partners.length === 0) {
    printLine(context.stdout, `There are no partners in ${path} yet.`);
  } else {
    printTable(context.stdout, createColumns(now, lastUses), partners.flatMap(toRows));
  }
}

/** The list is of use without it, so an absent or broken Redis is no failure. */
async function readLastUsesIfPossible({ environment, stderr }: Context): Promise<LastUses | undefined> {
  if (!environment["REDIS_URL"]) return undefined;
  const { REDIS_URL: redisUrl, QUEUE_PREFIX: prefix } = parseEnvironment(
    { REDIS_URL: variables.REDIS_URL, QUEUE_PREFIX: variables.QUEUE_PREFIX },
    environment,
  );
  try {
    return await readLastUses({ redisUrl, prefix });
  } catch {
    printLine(stderr, "Redis does not answer, so that it is not known when the secrets were last used.");
    return undefined;
  }
}

function createColumns(now: Date, lastUses: LastUses | undefined): Column<SecretRow>[] {
  const columns: Column<SecretRow>[] = [
    { header: "PARTNER", value: ({ partner }) => partner?.id ?? "" },
    { header: "NAME", value: ({ partner }) => partner?.name ?? "", ifNarrow: "shorten" },
    { header: "ENABLED", value: ({ partner }) => (partner ? (partner.enabled ? "yes" : "no") : "") },
    { header: "KINDS", value: ({ partner }) => (partner ? describeKinds(partner.kinds) : ""), ifNarrow: "shorten" },
    { header: "RATE", value: ({ partner }) => (partner ? describeRate(partner) : ""), ifNarrow: "drop" },
    { header: "SECRET", value: ({ secret }) => secret?.id ?? "none" },
    { header: "CREATED", value: ({ secret }) => secret?.createdAt.slice(0, 10) ?? "", ifNarrow: "drop" },
    { header: "VALID", value: ({ secret }) => (secret ? describeValidity(secret, now) : "") },
  ];
  if (lastUses === undefined) return columns;
  return [...columns, { header: "LAST USED", value: ({ id, secret }) => describeUse(lastUses, id, secret) }];
}

/** A line of the list. The partner stands on the first of its secrets only. */
interface SecretRow {
  id: string;
  partner: Partner | undefined;
  secret: PartnerSecret | undefined;
}

function toRows(partner: Partner): SecretRow[] {
  const [first, ...others] = partner.secrets;
  const { id } = partner;
  return [{ id, partner, secret: first }, ...others.map((secret) => ({ id, partner: undefined, secret }))];
}

function withoutDigests(partner: Partner, now: Date, lastUses: LastUses | undefined): unknown {
  const secrets = partner.secrets.map((secret) => ({
    id: secret.id,
    createdAt: secret.createdAt,
    expiresAt: secret.expiresAt,
    valid: isValid(secret, now),
    ...(lastUses === undefined ? {} : { lastUsedAt: lastUses.of(partner.id, secret.id) }),
  }));
  return { ...partner, secrets };
}

function describeUse(lastUses: LastUses, id: string, secret: PartnerSecret | undefined): string {
  if (secret === undefined) return "";
  const usedAt = lastUses.of(id, secret.id);
  return usedAt === null ? "never" : toSeconds(usedAt);
}

function describeKinds(kinds: EventKind[]): string {
  return eventKinds.every((kind) => kinds.includes(kind)) ? "all" : kinds.join(",");
}

function describeRate({ rateLimit: { perSecond, burst } }: Partner): string {
  return `${perSecond}/s, burst ${burst}`;
}

function describeValidity(secret: PartnerSecret, now: Date): string {
  if (secret.expiresAt === null) return "yes";
  const expiresAt = new Date(secret.expiresAt);
  if (Number.isNaN(expiresAt.getTime())) return "expired";
  return isValid(secret, now) ? `until ${toSeconds(expiresAt)}` : `expired ${toSeconds(expiresAt)}`;
}

function printSecret({ stdout }: Context, heading: string, { secret }: NewSecret, kinds: EventKind[]): void {
  printLine(stdout, heading);
  printLine(stdout);
  printLine(stdout, `  ${secret}`);
  printLine(stdout);
  printLine(stdout, "It is shown only now: hand it to the partner through a secure channel, and keep it out of logs.");
  printLine(stdout, "It is all that the partner needs to send events, as the last part of the address to POST to:");
  printLine(stdout);
  for (const kind of kinds) printLine(stdout, `  https://<your host>/booking-event/${kind}/<secret>`);
}

/** Changes the file, and tells the operator what is remarkable about it. */
async function change<Result extends { file: PartnersFile }>(
  context: Context,
  apply: (file: PartnersFile) => Result,
  createIfMissing = false,
): Promise<Result & { isNew: boolean }> {
  const changed = await changePartnersFile(partnersPath(context), apply, { createIfMissing });
  for (const warning of changed.warnings) printLine(context.stderr, `Warning: ${warning}`);
  return changed;
}

function partnersPath({ environment }: Context): string {
  return parseEnvironment({ PARTNERS_FILE: variables.PARTNERS_FILE }, environment).PARTNERS_FILE;
}

function parseKinds(text: string): EventKind[] {
  const names = text.split(",").map((name) => name.trim());
  if (!names.every((name) => eventKinds.some((kind) => kind === name))) {
    throw new InvalidArgumentError(`Name one or more of ${eventKinds.join(", ")}, with commas between them.`);
  }
  return eventKinds.filter((kind) => names.includes(kind));
}

function parseRate(text: string): number {
  const perSecond = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || perSecond < 0.01) throw new InvalidArgumentError("Give a number from 0.01.");
  return perSecond;
}

function parseBurst(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("Give a whole number from 1.");
  return Number(text);
}
