import type { DigestKey } from "./digest-key.ts";

export const contactKinds = ["email", "phone"] as const;
export type ContactKind = (typeof contactKinds)[number];

/** A consumer's contacts as sent, in any form. */
export type SentContacts = Record<ContactKind, unknown>;

/** Returns the listed contacts of a payload. Agents are not guests. */
export function contactsOf(payload: { [field: string]: unknown }): SentContacts {
  return { email: payload["consumerEmail"], phone: payload["consumerPhone"] };
}

/**
 * Normalizes a contact, so that one guest's bookings are found however partners write the contact: an e-mail address in
 * lower case; the digits of a phone number in any script, without those that E.164 leaves out. A number in national form
 * stays one.
 *
 * @returns undefined if there is none
 */
export function normalizeContact(kind: ContactKind, sent: unknown): string | undefined {
  if (typeof sent !== "string") return undefined;
  const normalized = kind === "email" ? sent.trim().toLowerCase() : normalizePhone(sent);
  return normalized === "" ? undefined : normalized;
}

/** As `booking_phone` in SQL does, except for the leading `+`, which a search may lack. */
function normalizePhone(sent: string): string {
  const digits = hasOtherScript.test(sent) ? sent.normalize("NFKC").replace(/\p{Nd}/gu, toAsciiDigit) : sent;
  return digits.replace(/\(0\)|\D/g, "").replace(/^00/, "");
}

const hasOtherScript = /[^\t-~]/;

/** The digits of a script follow each other, and something else comes before its zero. */
function toAsciiDigit(digit: string): string {
  const code = digit.codePointAt(0) ?? 0;
  let value = 0;
  while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(code - value - 1))) value += 1;
  return String(value);
}

/** The guests of a group. Every change of the hashes costs PostgreSQL an index entry for each of them. */
const maxGuestHashes = 100;
/** Stands for all hashes of a booking that has too many. No contact has this hash. */
const tooManyHashes = "-1";

/** @returns what `bookings.guest_hashes` is: the hashes without repetitions, or a mark that they are too many */
export function boundGuestHashes(hashes: Iterable<string>): string[] {
  const distinct = new Set(hashes);
  return distinct.has(tooManyHashes) || distinct.size > maxGuestHashes ? [tooManyHashes] : [...distinct];
}

/** @returns the entries of `bookings.guest_hashes` that a booking of the contact may have */
export function possibleGuestHashes(key: DigestKey, kind: ContactKind, normalized: string): string[] {
  return [hashContact(key, kind, normalized), tooManyHashes];
}

function hashContact(key: DigestKey, kind: ContactKind, normalized: string): string {
  return key.hashContact(`${kind}\0${normalized}`);
}

/** @returns the hashes of a payload's contacts, for `bookings.guest_hashes` */
export function hashContacts(key: DigestKey, contacts: SentContacts): string[] {
  return contactKinds.flatMap((kind) => {
    const normalized = normalizeContact(kind, contacts[kind]);
    return normalized === undefined ? [] : [hashContact(key, kind, normalized)];
  });
}
