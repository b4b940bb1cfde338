import { randomBytes } from "node:crypto";
import type { EventKind } from "@booking-events/schema";
import { PartnersError } from "./partners-error.ts";
import { digestSecret, type Partner, type PartnerSecret, type PartnersFile } from "./partners-file.ts";

const secretBytes = 32;

/** A new secret. It is shown once and not stored. */
export interface NewSecret {
  secretId: string;
  /** 256 random bits in base64url: 43 letters, digits, - and _, which need no escaping in a URL. */
  secret: string;
}

export interface PartnerToAdd extends Pick<Partner, "id" | "name" | "kinds" | "rateLimit" | "bytesPerDay" | "country"> {
  /** Its events are applied to test bookings. Default: false. */
  test?: boolean | undefined;
  /** Of its first secret. */
  expiresAt: Date | null;
}

export function addPartner(
  file: PartnersFile,
  { id, name, kinds, rateLimit, bytesPerDay, country, expiresAt, test = false }: PartnerToAdd,
  now: Date,
): { file: PartnersFile; added: NewSecret } {
  if (file.partners.some((partner) => partner.id === id)) {
    throw new PartnersError(`Partner ${id} already exists. To add a secret, run: ops partners rotate ${id}`);
  }
  const { added, record } = createSecret([], now, expiresAt);
  const limits = { rateLimit, bytesPerDay };
  const partner: Partner = {
    ...{ id, name, enabled: true, kinds, ...limits, held: false, test },
    secrets: [record],
    ...withCountry(country),
  };
  return { file: { ...file, partners: [...file.partners, partner] }, added };
}

/**
 * Adds a secret. Secrets that are valid now expire at the end of the overlap, or earlier if they already had to.
 *
 * @returns when the last previous secret expires; null if none of them is valid
 */
export function rotateSecret(
  file: PartnersFile,
  { id, overlapMs, expiresAt = null }: { id: string; overlapMs: number; expiresAt?: Date | null },
  now: Date,
): { file: PartnersFile; added: NewSecret; previousSecretsExpireAt: Date | null } {
  const partner = getPartner(file, id);
  const overlapEnd = new Date(now.getTime() + overlapMs);
  const previous = partner.secrets.map((secret) => expireBy(secret, overlapEnd, now));
  const { added, record } = createSecret(partner.secrets, now, expiresAt);
  const ends = previous
    .filter((_, place) => isValid(partner.secrets[place], now))
    .map(({ expiresAt }) => Date.parse(expiresAt ?? ""));
  return {
    file: replacePartner(file, { ...partner, secrets: [...previous, record] }),
    added,
    previousSecretsExpireAt: ends.length === 0 ? null : new Date(Math.max(...ends)),
  };
}

/** @returns whether the secret was valid, and whether the partner has another valid one */
export function revokeSecret(
  file: PartnersFile,
  { id, secretId }: { id: string; secretId: string },
  now: Date,
): { file: PartnersFile; wasValid: boolean; hasValidSecret: boolean } {
  const partner = getPartner(file, id);
  const revoked = partner.secrets.find((secret) => secret.id === secretId);
  if (revoked === undefined) {
    const known = partner.secrets.map((secret) => secret.id).join(", ") || "none";
    throw new PartnersError(`Partner ${id} has no secret ${secretId}. Its secrets: ${known}.`);
  }
  const wasValid = isValid(revoked, now);
  const secrets = partner.secrets.map((secret) =>
    secret === revoked && wasValid ? { ...secret, expiresAt: expiryOfRevoked(secret, now) } : secret,
  );
  return {
    file: wasValid ? replacePartner(file, { ...partner, secrets }) : file,
    wasValid,
    hasValidSecret: secrets.some((secret) => isValid(secret, now)),
  };
}

/** Whether events are taken: a partner that is not enabled is refused, and one that is held keeps its events. */
export type Admission = { enabled: boolean } | { held: boolean };

/** @returns the same file if nothing changes */
export function setAdmission(file: PartnersFile, id: string, admission: Admission): PartnersFile {
  const partner = getPartner(file, id);
  const changed = { ...partner, ...admission };
  const isSame = changed.enabled === partner.enabled && changed.held === partner.held;
  return isSame ? file : replacePartner(file, changed);
}

/** Omitted properties are not changed. */
export interface PartnerChanges {
  name?: string | undefined;
  kinds?: EventKind[] | undefined;
  perSecond?: number | undefined;
  burst?: number | undefined;
  bytesPerDay?: number | undefined;
  /** Null: no country any more. */
  country?: string | null | undefined;
}

export function changePartner(
  file: PartnersFile,
  { id, name, kinds, perSecond, burst, bytesPerDay, country }: PartnerChanges & { id: string },
): { file: PartnersFile; partner: Partner } {
  const partner = getPartner(file, id);
  const { country: countryBefore, ...rest } = partner;
  const changed: Partner = {
    ...rest,
    name: name ?? partner.name,
    kinds: kinds ?? partner.kinds,
    rateLimit: { perSecond: perSecond ?? partner.rateLimit.perSecond, burst: burst ?? partner.rateLimit.burst },
    bytesPerDay: bytesPerDay ?? partner.bytesPerDay,
    ...withCountry(country === undefined ? countryBefore : country),
  };
  return { file: replacePartner(file, changed), partner: changed };
}

/** A partner without a country has no such property, not even in JSON. */
function withCountry(country: string | null | undefined): Pick<Partner, "country"> {
  return country === null || country === undefined ? {} : { country };
}

/** Returns whether ingest accepts the secret. An expiry that is not a valid date refuses it. */
export function isValid(secret: PartnerSecret | undefined, now: Date): boolean {
  if (secret === undefined) return false;
  return secret.expiresAt === null || now.getTime() < Date.parse(secret.expiresAt);
}

/** A time of creation in the future, from a wrong clock, would leave the secret valid. */
function expiryOfRevoked({ createdAt }: PartnerSecret, now: Date): string {
  return Date.parse(createdAt) <= now.getTime() ? createdAt : now.toISOString();
}

/** Returns whether an operator has revoked the secret, which had not expired then. */
export function isRevoked({ createdAt, expiresAt }: PartnerSecret): boolean {
  return expiresAt === createdAt;
}

function getPartner(file: PartnersFile, id: string): Partner {
  const partner = file.partners.find((candidate) => candidate.id === id);
  if (partner === undefined) {
    throw new PartnersError(`Partner ${id} does not exist. To list all partners, run: ops partners list`);
  }
  return partner;
}

function replacePartner(file: PartnersFile, changed: Partner): PartnersFile {
  return { ...file, partners: file.partners.map((partner) => (partner.id === changed.id ? changed : partner)) };
}

function expireBy(secret: PartnerSecret, end: Date, now: Date): PartnerSecret {
  if (!isValid(secret, now)) return secret;
  const isSooner = secret.expiresAt !== null && Date.parse(secret.expiresAt) <= end.getTime();
  return isSooner ? secret : { ...secret, expiresAt: end.toISOString() };
}

function createSecret(
  others: PartnerSecret[],
  now: Date,
  expiresAt: Date | null,
): { added: NewSecret; record: PartnerSecret } {
  const secret = randomBytes(secretBytes).toString("base64url");
  const numbers = others.map(({ id }) => Number(/^s(\d{1,9})$/.exec(id)?.[1] ?? 0));
  const id = `s${Math.max(0, ...numbers) + 1}`;
  return {
    added: { secretId: id, secret },
    record: {
      id,
      sha256: digestSecret(secret),
      createdAt: now.toISOString(),
      expiresAt: expiresAt?.toISOString() ?? null,
    },
  };
}
