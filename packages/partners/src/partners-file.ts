import { hash } from "node:crypto";
import { eventKinds } from "@booking-events/schema";
import * as v from "valibot";

const instantMessage = "must be a date-time such as 2026-11-20T00:00:00Z";
const instant = v.pipe(v.string(), v.isoTimestamp(instantMessage), v.check(isMoment, instantMessage));

const PartnerSecret = v.strictObject({
  id: v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{1,64}$/, "must be 1 to 64 letters, digits, - or _")),
  /** Lower-case hex of the SHA-256 of the secret. The secret has 256 random bits, so a plain digest can't be guessed. */
  sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/, "must be the 64 lower-case hex digits of a SHA-256")),
  createdAt: instant,
  /** From this time on the secret is refused. null: it does not expire. */
  expiresAt: v.nullable(instant),
});

const Partner = v.strictObject({
  id: v.pipe(
    v.string(),
    v.regex(
      /^[a-z0-9][a-z0-9_-]{0,63}$/,
      "must be 1 to 64 lower-case letters, digits, - or _, not starting with - or _",
    ),
  ),
  name: v.pipe(v.string(), v.nonEmpty("must not be empty")),
  enabled: v.boolean(),
  kinds: v.pipe(
    v.array(v.picklist(eventKinds, "must be create, update or delete")),
    v.minLength(1, "must name at least one kind"),
  ),
  rateLimit: v.strictObject({
    perSecond: v.pipe(v.number(), v.minValue(0.01, "must be above 0")),
    burst: v.pipe(v.number(), v.integer("must be a whole number"), v.minValue(1, "must be at least 1")),
  }),
  secrets: v.array(PartnerSecret),
});

const PartnersFile = v.pipe(
  v.strictObject({ partners: v.array(Partner) }),
  v.check(({ partners }) => areUnique(partners.map(({ id }) => id)), "has two partners with the same id"),
  v.check(
    ({ partners }) => areUnique(partners.flatMap(({ secrets }) => secrets.map(({ sha256 }) => sha256))),
    "has the same secret twice, so that it would not be clear whose it is",
  ),
);

export type PartnerSecret = v.InferOutput<typeof PartnerSecret>;
export type Partner = v.InferOutput<typeof Partner>;
export type PartnersFile = v.InferOutput<typeof PartnersFile>;

/** Some editors, on Windows above all, write one at the beginning of a file in UTF-8. */
const byteOrderMark = "\ufeff";

/**
 * Parses the partners file, which holds digests only.
 *
 * @returns the partners, or what is wrong with the text: where and what to put there, never what stands there
 */
export function parsePartnersFile(
  text: string,
): { success: true; file: PartnersFile } | { success: false; problems: string[] } {
  let value: unknown;
  try {
    value = JSON.parse(text.startsWith(byteOrderMark) ? text.slice(byteOrderMark.length) : text);
  } catch {
    return { success: false, problems: ["is not JSON"] };
  }
  const result = v.safeParse(PartnersFile, value);
  if (result.success) return { success: true, file: result.output };
  return { success: false, problems: result.issues.map(describeIssue) };
}

/** The digest that the partners file holds of a secret. */
export function digestSecret(secret: string): string {
  return hash("sha256", secret, "hex");
}

/** Says where and what; valibot's own messages would repeat the value. */
function describeIssue(issue: v.BaseIssue<unknown>): string {
  const path = v.getDotPath(issue);
  if (issue.kind === "validation") return path === null ? issue.message : `${path} ${issue.message}`;
  if (issue.received === "undefined") return `${path ?? "the file"} is missing`;
  const expected = issue.expected === "never" ? "is not a known field" : `must be ${issue.expected ?? issue.type}`;
  return `${path ?? "the file"} ${expected}`;
}

/** False: an offset such as `+02`, which no `Date` can read, or a day such as 31 February, which it reads as another. */
function isMoment(text: string): boolean {
  const day = text.slice(0, 10);
  const isDay = !Number.isNaN(Date.parse(day)) && new Date(day).toISOString().startsWith(day);
  return isDay && !Number.isNaN(Date.parse(text));
}

function areUnique(values: string[]): boolean {
  return new Set(values).size === values.length;
}
