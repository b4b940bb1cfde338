import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeEach, expect, test } from "vitest";
import { DigestKeyError, openDigestKey } from "./digest-key.ts";

const { pool } = useTestDatabase({ maxConnections: 4 });
const secret = "an operator's key of 32 characters or more";
const digest = "01".repeat(32);

beforeEach(() => pool.query("update digest_key set fingerprint = null, key = $1", [Buffer.alloc(32, 7)]));

test("all processes use the key that the migration has made", async () => {
  const [one, other] = await Promise.all([openDigestKey(pool, undefined), openDigestKey(pool, undefined)]);
  expect(one.digestContent(digest)).toBe(other.digestContent(digest));
  expect(one.digestContent(digest)).toMatch(/^[0-9a-f]{32}$/);
  expect(one.hashBookingKey(Buffer.from(digest, "hex")).toString("hex")).not.toContain(one.digestContent(digest));
});

test("with an operator's key, the database keeps none, and a process without the key is refused", async () => {
  const key = await openDigestKey(pool, secret);
  expect((await openDigestKey(pool, secret)).digestContent(digest)).toBe(key.digestContent(digest));
  expect((await pool.query("select key from digest_key")).rows).toEqual([{ key: null }]);
  await expect(openDigestKey(pool, undefined)).rejects.toThrow(/^The database's digests were made with an operator's/);
});

test("a key that is set later, or changed, is refused, and the one in use stays", async () => {
  const key = await openDigestKey(pool, undefined);
  await expect(openDigestKey(pool, secret)).rejects.toThrow(DigestKeyError);
  expect((await openDigestKey(pool, undefined)).digestContent(digest)).toBe(key.digestContent(digest));
});

test("of processes with different keys that start at once, one key wins", async () => {
  const started = await Promise.allSettled([1, 2, 3, 4].map((number) => openDigestKey(pool, `${secret} ${number}`)));
  expect(started.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
});
