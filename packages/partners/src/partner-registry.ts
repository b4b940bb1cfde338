import { timingSafeEqual } from "node:crypto";
import { digestSecret, type Partner, type PartnersFile } from "./partners-file.ts";

/** A secret that the partners file knows, whether or not it may be used now. */
export interface KnownSecret {
  partner: Partner;
  secretId: string;
  /** Epoch milliseconds from which it is refused; Infinity: it does not expire. */
  expiresAtMs: number;
}

/** The partners of one version of the partners file. It never changes; a new version is a new registry. */
export interface PartnerRegistry {
  partnerCount: number;
  secretCount: number;
  findSecret(secret: string): KnownSecret | undefined;
}

/** What an unknown secret is compared with, for the time's sake. No digest equals it. */
const nobodysDigest = Buffer.alloc(64);

/**
 * Secrets are looked up by their SHA-256, so the time a lookup takes depends on digests, which a guesser can't steer,
 * and not on how much of a secret was guessed right, nor on how many there are.
 */
export function createPartnerRegistry({ partners }: PartnersFile): PartnerRegistry {
  const byDigest = new Map<string, KnownSecret & { digest: Buffer }>();
  for (const partner of partners) {
    for (const { id: secretId, sha256, expiresAt } of partner.secrets) {
      const expiresAtMs = expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
      byDigest.set(sha256, { partner, secretId, expiresAtMs, digest: Buffer.from(sha256) });
    }
  }
  return {
    partnerCount: partners.length,
    secretCount: byDigest.size,
    findSecret(secret) {
      const digest = digestSecret(secret);
      const known = byDigest.get(digest);
      return timingSafeEqual(known?.digest ?? nobodysDigest, Buffer.from(digest)) ? known : undefined;
    },
  };
}
