import { timingSafeEqual } from "node:crypto";
import { digestSecret, type Partner, type PartnersFile } from "./partners-file.ts";

/** A secret in the partners file, whether or not it is valid now. */
export interface KnownSecret {
  partner: Partner;
  secretId: string;
  /** When it expires, in epoch milliseconds. Infinity if it does not expire. */
  expiresAtMs: number;
  /** It was revoked, although the file may say otherwise. */
  isRevoked: boolean;
}

/** The partners in one version of the partners file. It is immutable; a new version of the file is a new registry. */
export interface PartnerRegistry {
  partners: readonly Partner[];
  partnerCount: number;
  secretCount: number;
  findSecret(secret: string): KnownSecret | undefined;
  /** Whether the id is that of a test partner. */
  isTest(partner: string): boolean;
}

/** Compared with the digest of an unknown secret, so the timing does not differ. No digest equals it. */
const unusedDigest = Buffer.alloc(64);

/**
 * Looks secrets up by their SHA-256. The time of a lookup therefore depends on digests, which an attacker cannot
 * choose, and not on how much of a secret was guessed or on the number of secrets.
 *
 * @param isRevoked whether the secret with a digest was revoked. It is asked at each lookup
 */
export function createPartnerRegistry(
  { partners }: PartnersFile,
  isRevoked: (sha256: string) => boolean = () => false,
): PartnerRegistry {
  const byDigest = new Map<string, Omit<KnownSecret, "isRevoked"> & { digest: Buffer }>();
  for (const partner of partners) {
    for (const { id: secretId, sha256, expiresAt } of partner.secrets) {
      const expiresAtMs = expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
      byDigest.set(sha256, { partner, secretId, expiresAtMs, digest: Buffer.from(sha256) });
    }
  }
  const tests = new Set(partners.filter(({ test }) => test).map(({ id }) => id));
  return {
    partners,
    partnerCount: partners.length,
    secretCount: byDigest.size,
    isTest: (partner) => tests.has(partner),
    findSecret(secret) {
      const digest = digestSecret(secret);
      const known = byDigest.get(digest);
      const isEqual = timingSafeEqual(known?.digest ?? unusedDigest, Buffer.from(digest));
      return isEqual && known !== undefined ? { ...known, isRevoked: isRevoked(digest) } : undefined;
    },
  };
}
