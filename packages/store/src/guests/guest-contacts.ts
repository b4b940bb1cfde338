import { consumerCountriesOf, phoneCandidates, readEmail, writtenDigits } from "@booking-events/schema/normalise";
import type { SentContent } from "../tables/content-columns.ts";
import type { DigestKey } from "./digest-key.ts";

export const contactKinds = ["email", "phone"] as const;
export type ContactKind = (typeof contactKinds)[number];

/** The fields with a consumer's contacts. Agents are not guests. */
export const contactFields = { email: "consumerEmail", phone: "consumerPhone" } as const;
/** All fields that decide whose contacts they are: a phone number without a country code is read by the nationality. */
export const guestFields = [...Object.values(contactFields), "consumerNationality"] as const;

/** What a contact has in common with others. */
export interface ContactForms {
  /** Two contacts with an equal text here are the same address or number, however they were written. */
  same: readonly string[];
  /** Two contacts with an equal text here resemble each other: the ends of phone numbers. */
  near: readonly string[];
}

/** @returns undefined if there is no contact */
export function formsOfContact(kind: ContactKind, { payload, defaultCountry }: SentContent): ContactForms | undefined {
  const sent = (payload as Record<string, unknown>)[contactFields[kind]];
  if (typeof sent !== "string" || sent.trim() === "") return undefined;
  return kind === "email" ? formsOfEmail(sent) : formsOfPhone(sent, consumerCountriesOf(payload, { defaultCountry }));
}

/** Also the number as it was written: without a country code, nothing else says that two numbers are the same. */
function formsOfPhone(sent: string, countries: string[]): ContactForms {
  const { same, near } = phoneCandidates(sent, countries);
  const written = writtenDigits(sent);
  return { same: written === "" ? same : [...new Set([...same, written])], near };
}

/** Much longer texts are no addresses. */
const maxEmailsLength = 1_000;
const maxEmails = 10;

/** The one address; of a text that can't be read as one, each address in it, and the text itself. */
function formsOfEmail(sent: string): ContactForms {
  const email = readEmail(sent);
  if (email !== undefined) return { same: [email.toLowerCase()], near: [] };
  const text = sent.trim().slice(0, maxEmailsLength).toLowerCase();
  const parts = text.split(/[\s,;<>"']+/).flatMap((part) => readEmail(part) ?? []);
  return { same: [...new Set([text, ...parts.slice(0, maxEmails)])], near: [] };
}

/** The guests of a group. Every change of the hashes costs PostgreSQL an index entry for each of them. */
const maxGuestHashes = 100;
/** Stands for all hashes of a booking that has too many. No contact has this hash. */
export const tooManyHashes = "-1";

/** @returns what `bookings.guest_hashes` is: the hashes without repetitions, or a mark that they are too many */
export function boundGuestHashes(hashes: Iterable<string>): string[] {
  const distinct = new Set(hashes);
  return distinct.has(tooManyHashes) || distinct.size > maxGuestHashes ? [tooManyHashes] : [...distinct];
}

/** @returns the entries of `bookings.guest_hashes` that a booking of the contact, or a similar one, may have */
export function possibleGuestHashes(key: DigestKey, kind: ContactKind, forms: ContactForms): string[] {
  return [...[...forms.near, ...forms.same].map((form) => hashForm(key, kind, form)), tooManyHashes];
}

/** @returns the hashes of a content's contacts, for `bookings.guest_hashes` */
export function hashContacts(key: DigestKey, content: SentContent): string[] {
  return contactKinds.flatMap((kind) => {
    const forms = formsOfContact(kind, content);
    return forms === undefined ? [] : indexedForms(forms).map((form) => hashForm(key, kind, form));
  });
}

/** The same numbers have the same end, so that is enough to find them. Each entry of the index costs PostgreSQL time. */
function indexedForms({ same, near }: ContactForms): string[] {
  return [...near, ...same.filter((form) => !near.some((end) => form.endsWith(end)))];
}

function hashForm(key: DigestKey, kind: ContactKind, form: string): string {
  return key.hashContact(`${kind}\0${form}`);
}
