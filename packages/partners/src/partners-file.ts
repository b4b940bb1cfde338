import { hash } from "node:crypto";
import { eventKinds, JsonError, parseJsonObject } from "@booking-events/schema";
import { readCountry } from "@booking-events/schema/normalise";
import * as v from "valibot";

const instantMessage = "must be a date-time such as 2026-11-20T00:00:00Z";
const instant = v.pipe(v.string(), v.isoTimestamp(instantMessage), v.check(isInstant, instantMessage));

const PartnerSecret = v.strictObject({
  id: v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 letters, digits, - or _")),
  /**
   * The SHA-256 of the secret in lowercase hex. The secret has 256 random bits, so its digest cannot be reversed by
   * guessing.
   */
  sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/, "must be the 64 lowercase hex digits of a SHA-256")),
  createdAt: instant,
  /**
   * The time from which the secret is refused. null if it does not expire. A revoked secret has its `createdAt` here: a
   * field of its own would make the file invalid for ingests of older releases, which would keep accepting the secret.
   */
  expiresAt: v.nullable(instant),
});

/** Of a partner whose entry names none. Some five million ordinary events. */
export const defaultBytesPerDay = 5_000_000_000;

export const partnerIdPattern = /^[a-z0-9][a-z0-9_-]{0,63}$/;

const Partner = v.strictObject({
  id: v.pipe(
    v.string(),
    v.regex(partnerIdPattern, "must be 1 to 64 lowercase letters, digits, - or _, not starting with - or _"),
  ),
  name: v.pipe(v.string(), v.nonEmpty("must not be empty")),
  enabled: v.boolean(),
  kinds: v.pipe(
    v.array(v.picklist(eventKinds, "must be create, update or delete")),
    v.minLength(1, "must name at least one kind"),
  ),
  rateLimit: v.strictObject({
    perSecond: v.pipe(v.number(), v.minValue(0.01, "must be at least 0.01")),
    burst: v.pipe(v.number(), v.integer("must be a whole number"), v.minValue(1, "must be at least 1")),
  }),
  /** The quota: how many bytes of payloads may be accepted from midnight to midnight, in UTC. */
  bytesPerDay: v.optional(
    v.pipe(v.number(), v.integer("must be a whole number"), v.minValue(1, "must be at least 1")),
    defaultBytesPerDay,
  ),
  /** Phone numbers without a country code are read as numbers of this country: an ISO 3166-1 alpha-2 code. */
  country: v.optional(v.pipe(v.string(), v.check(isCountryCode, "must be an ISO 3166-1 alpha-2 code, such as GB"))),
  /** Its events are refused for now, so that its sender keeps them. */
  held: v.optional(v.boolean(), false),
  /** Its events are applied to test bookings, apart from all others. An id keeps its mark once it has sent an event. */
  test: v.optional(v.boolean(), false),
  secrets: v.array(PartnerSecret),
});

const PartnersFile = v.pipe(
  v.strictObject({ partners: v.array(Partner) }),
  v.check(({ partners }) => areUnique(partners.map(({ id }) => id)), "has two partners with the same id"),
  v.check(
    ({ partners }) => areUnique(partners.flatMap(({ secrets }) => secrets.map(({ sha256 }) => sha256))),
    "has the same secret more than once",
  ),
  v.check(
    ({ partners }) => partners.every(({ secrets }) => areUnique(secrets.map(({ id }) => id))),
    "has a partner with two secrets of the same id",
  ),
);

export type PartnerSecret = v.InferOutput<typeof PartnerSecret>;
export type Partner = v.InferOutput<typeof Partner>;
export type PartnersFile = v.InferOutput<typeof PartnersFile>;

/** Some editors, mostly on Windows, write a byte order mark at the start of a UTF-8 file. */
const byteOrderMark = "\ufeff";

/**
 * Parses the partners file, which contains digests only.
 *
 * @returns the partners; or the problems, with their place and the rule but without the text
 */
export function parsePartnersFile(
  text: string,
): { success: true; file: PartnersFile } | { success: false; problems: string[] } {
  let value: unknown;
  try {
    value = parseJsonObject(text.startsWith(byteOrderMark) ? text.slice(byteOrderMark.length) : text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return { success: false, problems: [describeJsonError(error)] };
  }
  const result = v.safeParse(PartnersFile, value);
  if (result.success) return { success: true, file: result.output };
  return { success: false, problems: result.issues.map(describeIssue) };
}

/** Of two members with one name, nobody knows which one was meant. */
function describeJsonError({ kind, line, column }: JsonError): string {
  switch (kind) {
    case "malformed":
      return "is not JSON";
    case "repeated-key":
      return `has a name twice in one object, at line ${line}, column ${column}`;
    case "not-an-object":
      return "is not a JSON object";
  }
}

/** Returns a secret's digest as in the partners file. */
export function digestSecret(secret: string): string {
  return hash("sha256", secret, "hex");
}

/** Describes the place and the rule; valibot's own messages would repeat the value. */
function describeIssue(issue: v.BaseIssue<unknown>): string {
  const path = v.getDotPath(issue);
  if (issue.kind === "validation") return path === null ? issue.message : `${path} ${issue.message}`;
  if (issue.received === "undefined") return `${path ?? "the file"} is missing`;
  const expected = issue.expected === "never" ? "is not a known field" : `must be ${issue.expected ?? issue.type}`;
  return `${path ?? "the file"} ${expected}`;
}

/**
 * Returns false for an offset such as `+02`, which `Date` cannot parse, and for a day such as 31 February, which it
 * parses as another day.
 */
function isInstant(text: string): boolean {
  const day = text.slice(0, 10);
  const isDay = !Number.isNaN(Date.parse(day)) && new Date(day).toISOString().startsWith(day);
  return isDay && !Number.isNaN(Date.parse(text));
}

function areUnique(values: string[]): boolean {
  return new Set(values).size === values.length;
}

/** The code itself, not one of the names and aliases by which a country is known. */
function isCountryCode(text: string): boolean {
  return readCountry(text) === text;
}
