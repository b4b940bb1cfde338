import { createHmac, hash } from "node:crypto";
import type pg from "pg";
import type { Queryable } from "../connect/queryable.ts";
import { RollBack } from "../connect/roll-back.ts";
import { safeMessage } from "../connect/safe-message.ts";
import { inTransaction } from "../connect/transaction.ts";
import { sha256 } from "../tables/sha256.ts";

/**
 * Computes keyed hashes. Guests' data can be guessed: without the key, nobody can confirm a guess by a hash in the
 * database.
 */
export interface DigestKey {
  /**
   * @param digest the SHA-256 of the canonical content, in hex
   * @returns the content digest, in hex
   */
  digestContent(digest: string): string;
  /** Returns the key that a booking's row has once the booking is erased. */
  hashBookingKey(bookingKey: Buffer): Buffer;
  /**
   * @param contact an address or a number in its normalized form, with its kind
   * @returns a whole number as text
   */
  hashContact(contact: string): string;
}

/** The process has another key than the one that the database's digests were made with. */
export class DigestKeyError extends RollBack {
  override name = "DigestKeyError";
  readonly [safeMessage] = true;
}

/** Of a SHA-256 digest in hex. */
const digestCharacters = 64;
/** Enough to tell the contents of one booking apart, and half of what each event in the log would need otherwise. */
const contentDigestCharacters = 32;
/** 52 bits, so that the number is exact in JavaScript. The content decides about guests whose hashes are equal. */
const contactHashCharacters = 13;

/**
 * Reads the key that all processes use. The first process records its fingerprint.
 *
 * @param secret the operator's own key; undefined: the key in the database
 * @throws DigestKeyError if the database's digests were made with another key
 */
export function openDigestKey(pool: pg.Pool, secret: string | undefined): Promise<DigestKey> {
  return inTransaction(pool, async (client) => {
    const stored = await readStoredKey(client);
    if (stored.fingerprint === null) {
      // The generated key goes, so that nobody can use it by mistake.
      await client.query(
        `update digest_key set fingerprint = $1, key = case when $2 then null else key end where fingerprint is null`,
        [derive(chooseKey(stored, secret), "fingerprint"), secret !== undefined],
      );
    }
    // Another process may have recorded its own fingerprint meanwhile.
    return readDigestKey(client, secret);
  });
}

/**
 * Reads the key for a process that only reads. It records no fingerprint.
 *
 * @throws DigestKeyError as {@link openDigestKey}
 */
export async function readDigestKey(client: Queryable, secret: string | undefined): Promise<DigestKey> {
  const stored = await readStoredKey(client);
  const key = chooseKey(stored, secret);
  if (stored.fingerprint !== null && !derive(key, "fingerprint").equals(stored.fingerprint))
    throw new DigestKeyError(otherKey);
  return createDigestKey(key);
}

interface StoredKey {
  key: Buffer | null;
  fingerprint: Buffer | null;
}

async function readStoredKey(client: Queryable): Promise<StoredKey> {
  const { rows } = await client.query<StoredKey>("select key, fingerprint from digest_key");
  return rows[0] ?? { key: null, fingerprint: null };
}

/** @throws DigestKeyError if the operator keeps the key, and has not set it */
function chooseKey(stored: StoredKey, secret: string | undefined): Buffer {
  const key = secret === undefined ? stored.key : Buffer.from(secret);
  if (key === null) throw new DigestKeyError(missingKey);
  return key;
}

const missingKey =
  "The database's digests were made with an operator's key. Set DIGEST_KEY to it: without it, neither duplicates nor " +
  "erased bookings can be recognized.";
const otherKey =
  "DIGEST_KEY is not the key that the database's digests were made with. Restore that one, or unset DIGEST_KEY if it " +
  "was never set: with another key, neither duplicates nor erased bookings can be recognized.";

/** @param key of any length */
export function createDigestKey(key: Buffer): DigestKey {
  const contentKey = derive(key, "content").toString("hex");
  const bookingsKey = derive(key, "booking").toString("hex");
  const contactKey = derive(key, "contact").toString("hex");
  return {
    digestContent: (digest) =>
      hash("sha256", contentKey + checkDigest(digest), "hex").slice(0, contentDigestCharacters),
    hashBookingKey: (bookingKey) => sha256(bookingsKey + checkDigest(bookingKey.toString("hex"))),
    // A hash of which only a part is known can't be extended, so the contact may have any length.
    hashContact: (contact) =>
      String(Number.parseInt(hash("sha256", contactKey + contact, "hex").slice(0, contactHashCharacters), 16)),
  };
}

/**
 * The key and a digest are hashed by one SHA-256. Inputs always have the same length, so nobody can extend them, which
 * is what HMAC prevents. It would take three times as long.
 */
function checkDigest(digest: string): string {
  if (digest.length !== digestCharacters) throw new RangeError("A SHA-256 digest has 32 bytes.");
  return digest;
}

function derive(key: Buffer, purpose: string): Buffer {
  return createHmac("sha256", key).update(purpose).digest();
}
