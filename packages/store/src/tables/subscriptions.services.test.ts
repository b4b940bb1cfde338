import { createHash } from "node:crypto";
import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { escapeIdentifier } from "pg";
import { beforeEach, expect, test } from "vitest";
import { inTransaction } from "../connect/transaction.ts";
import { migrate } from "../upkeep/migrate.ts";
import {
  channelOfSubscriptions,
  findSubscription,
  insertSubscription,
  listPullSubscriptions,
  listSubscriptions,
  listWebhookSubscriptions,
  pauseFailingSubscriptions,
  pauseSubscription,
  readSigningKeys,
  removeSubscription,
  resumeSubscription,
  rotateKeys,
  type SubscriptionToAdd,
} from "./subscriptions.ts";

const { pool, url } = useTestDatabase({ maxConnections: 2 });

beforeEach(() =>
  pool.query("truncate subscriptions, feed_readers, booking_changes cascade; update feed_position set last_id = 7"),
);

const everything = { partners: null, changes: null, countries: null, arrivalFromDays: null, arrivalToDays: null };
const [firstKey, secondKey] = ["whsec_first", "whsec_second"];
const posted = {
  ...everything,
  ...{ name: "posted", url: "https://example.com/hook", mode: "latest", payload: "thin", signature: "hmac" },
  ...{ signingKey: firstKey, tokenSha256: null, createdBy: "Ada" },
} satisfies SubscriptionToAdd;

const digestOf = (token: string) => createHash("sha256").update(token).digest();
const pulled = {
  ...everything,
  ...{ name: "pulled", url: null, mode: null, payload: "full", signature: null },
  ...{ signingKey: null, tokenSha256: digestOf("first"), createdBy: "Ada" },
} satisfies SubscriptionToAdd;

test("a subscription begins at the feed's position, and keeps what it was added with", async () => {
  const filter = { partners: ["acme"], changes: ["created" as const], countries: ["GB"] };
  await insertSubscription(pool, { ...posted, ...filter, arrivalFromDays: 0, arrivalToDays: 14 });
  const { signingKey, tokenSha256: _, ...kept } = { ...posted, ...filter, arrivalFromDays: 0, arrivalToDays: 14 };
  const found = { ...kept, fromId: 7, previousKeyUntil: null, pausedAt: null, pauseReason: null, pausedBy: null };
  const subscription = { ...found, createdAt: expect.any(Date), updatedAt: expect.any(Date) };
  expect(await findSubscription(pool, "posted")).toEqual(subscription);
  expect(await listSubscriptions(pool)).toEqual([subscription]);
  expect(await listWebhookSubscriptions(pool)).toEqual([{ ...subscription, signingKey, previousSigningKey: null }]);
});

test("no two subscriptions have a name, and none has that of another reader", async () => {
  await pool.query("insert into feed_readers (name) values ('arrivals')");
  expect(await insertSubscription(pool, posted)).toBe("added");
  expect(await insertSubscription(pool, { ...posted, url: "https://example.com/other" })).toBe("taken");
  expect(await insertSubscription(pool, { ...posted, name: "arrivals" })).toBe("taken");
  expect(await listSubscriptions(pool)).toMatchObject([{ name: "posted", url: posted.url }]);
});

test("the process that posts is given those that are active and posted to", async () => {
  for (const added of [posted, pulled, { ...posted, name: "paused" }]) await insertSubscription(pool, added);
  expect(await pauseSubscription(pool, "paused", { reason: "a move", by: "Ada" })).toBe(true);
  expect(await pauseSubscription(pool, "paused", { reason: "another", by: "Bob" })).toBe(false);
  const names = async () => (await listWebhookSubscriptions(pool)).map(({ name }) => name);
  expect(await names()).toEqual(["posted"]);
  expect(await findSubscription(pool, "paused")).toMatchObject({ pauseReason: "a move", pausedBy: "Ada" });
  expect(await resumeSubscription(pool, "paused")).toBe(true);
  expect(await resumeSubscription(pool, "paused")).toBe(false);
  expect(await names()).toEqual(["paused", "posted"]);
});

test("whoever resumes one waits for whoever moves its reader, and neither fails", async () => {
  await insertSubscription(pool, posted);
  await pool.query("insert into feed_readers (name, last_id) values ('posted', 7)");
  await pauseSubscription(pool, "posted", { reason: null, by: "Ada" });
  const [resuming] = await inTransaction(pool, async (client) => {
    await client.query("select from feed_readers where name = 'posted' for update");
    const resumed = inTransaction(pool, (other) => resumeSubscription(other, "posted"));
    await waitFor(async () => {
      const { rowCount } = await client.query("select from pg_locks where not granted");
      expect(rowCount).toBeGreaterThan(0);
    });
    await client.query("update subscriptions set from_id = 5 where name = 'posted'");
    return [resumed];
  });
  expect(await resuming).toBe(true);
});

test("after a rotation, both keys sign until the stated time", async () => {
  await insertSubscription(pool, posted);
  const rotated = { name: "posted", signingKey: secondKey, tokenSha256: null, keepHours: 24 };
  const until = await rotateKeys(pool, rotated);
  expect(await listWebhookSubscriptions(pool)).toMatchObject([
    { signingKey: secondKey, previousSigningKey: firstKey, previousKeyUntil: until },
  ]);
  const { rows } = await pool.query("select $1::timestamptz - now() > interval '23:59' as later", [until]);
  expect(rows).toEqual([{ later: true }]);
  await pool.query("update subscriptions set previous_key_until = now()");
  expect(await readSigningKeys(pool, "posted")).toEqual({ signingKey: secondKey, previousSigningKey: null });
  expect(await rotateKeys(pool, { ...rotated, name: "unknown" })).toBeUndefined();
});

test("after a rotation, both tokens are valid until the stated time", async () => {
  await insertSubscription(pool, posted);
  await insertSubscription(pool, pulled);
  const rotated = { name: "pulled", signingKey: null, tokenSha256: digestOf("second"), keepHours: 1 };
  await rotateKeys(pool, rotated);
  const both = { name: "pulled", tokenSha256: digestOf("second"), previousTokenSha256: digestOf("first") };
  expect(await listPullSubscriptions(pool)).toMatchObject([both]);
  await pool.query("update subscriptions set previous_key_until = now()");
  expect(await listPullSubscriptions(pool)).toMatchObject([{ ...both, previousTokenSha256: null }]);
  expect(await readSigningKeys(pool, "pulled")).toBeUndefined();
});

test("what has failed for days before it was paused does not pause it again", async () => {
  await insertSubscription(pool, posted);
  await pauseSubscription(pool, "posted", { reason: null, by: "webhooks" });
  await pool.query(`insert into feed_readers (name, failing_since, breaker_opened_at, probe_at)
    values ('posted', now() - interval '5 days', now(), now()), ('another', now(), now(), now())`);
  expect(await resumeSubscription(pool, "posted")).toBe(true);
  const { rows } = await pool.query(
    "select name from feed_readers where num_nulls(failing_since, breaker_opened_at, probe_at) = 3",
  );
  expect(rows).toEqual([{ name: "posted" }]);
});

test.each([
  ["has renewed its lease for 10 seconds", "now() - interval '10 seconds'"],
  ["can have renewed it, because PostgreSQL's clock was ahead then", "now() + interval '440 days'"],
])("a subscription is removed with its reader, once no process %s", async (_, seenAt) => {
  await insertSubscription(pool, posted);
  await pool.query(
    `insert into feed_readers (name, active_id) values ('posted', gen_random_uuid()), ('another', null)`,
  );
  await pool.query("insert into feed_deliveries (reader, booking_id, done_id) values ('posted', gen_random_uuid(), 1)");
  expect(await removeSubscription(pool, "posted")).toBe("busy");
  expect(await findSubscription(pool, "posted")).toBeDefined();
  await pool.query(`update feed_readers set seen_at = ${seenAt}`);
  expect(await removeSubscription(pool, "posted")).toBe("removed");
  expect(await removeSubscription(pool, "posted")).toBe("unknown");
  const { rows } = await pool.query(
    "select name, (select count(*)::int from feed_deliveries) as deliveries from feed_readers",
  );
  expect(rows).toEqual([{ name: "another", deliveries: 0 }]);
});

test.each([
  ["a URL and a token", { ...posted, tokenSha256: digestOf("first") }],
  ["neither", { ...pulled, tokenSha256: null }],
  ["a name that holds a full stop", { ...posted, name: "a.b" }],
  ["an empty filter, which nothing passes", { ...posted, partners: [] }],
  ["half a window", { ...posted, arrivalFromDays: 1 }],
  ["a window that ends before it begins", { ...posted, arrivalFromDays: 1, arrivalToDays: 0 }],
])("the database refuses a subscription with %s", async (_, added) => {
  await expect(insertSubscription(pool, added)).rejects.toMatchObject({ code: "23514" });
});

test.each(["public", "Other; --", "s".repeat(63)])(
  "each write notifies the channel of the schema %s",
  async (schema) => {
    await migrate(url, { schema });
    const client = await pool.connect();
    let count = 0;
    client.on("notification", () => {
      count += 1;
    });
    try {
      await client.query(`listen ${escapeIdentifier(channelOfSubscriptions(schema))}`);
      await client.query(`set search_path to ${escapeIdentifier(schema)}`);
      await insertSubscription(client, posted);
      await waitFor(() => expect(count).toBe(1));
      await pauseSubscription(client, "posted", { reason: "a move", by: "Ada" });
      await waitFor(() => expect(count).toBe(2));
      await client.query("delete from subscriptions");
      await waitFor(() => expect(count).toBe(3));
    } finally {
      client.release(true);
    }
  },
);

test("a subscription is paused if it has asked for pauses for days, unless what waits has come since", async () => {
  await pool.query(
    `insert into booking_changes (id, booking_id, partner, reference_kind, reference, revision, change, event_id,
       sequence, changed_at)
     select id, gen_random_uuid(), 'acme', 'trip', 'T', 1, 'created', gen_random_uuid(), id, now() - age
     from (values (8, interval '6 days'), (9, interval '1 day')) as change (id, age)`,
  );
  for (const [name, lastId] of [
    ["failing", 7],
    ["idle", 8],
    ["at-end", 9],
  ] as const) {
    await insertSubscription(pool, { ...posted, name });
    await pool.query(
      "insert into feed_readers (name, last_id, failing_since) values ($1, $2, now() - interval '6 days')",
      [name, lastId],
    );
  }
  expect(await pauseFailingSubscriptions(pool, { days: 5, reason: "", by: "webhooks" })).toEqual(["failing"]);
});

test("a subscription is paused if all attempts have failed for days and a booking still waits", async () => {
  const names = ["failing", "idle", "dead", "briefly", "working", "paused"];
  for (const name of names) {
    await insertSubscription(pool, { ...posted, name });
    await pool.query("insert into feed_readers (name, last_id) values ($1, 7)", [name]);
  }
  await insertSubscription(pool, pulled);
  await pauseSubscription(pool, "paused", { reason: "a move", by: "Ada" });
  await pool.query(
    "update feed_readers set failing_since = now() - interval '5 days 1 minute' where name <> 'working'",
  );
  await pool.query("update feed_readers set failing_since = now() - interval '4 days 23 hours' where name = 'briefly'");
  await pool.query(
    `insert into feed_deliveries (reader, booking_id, change_id, retry_at, died_at)
     select name, gen_random_uuid(), 7, case when name <> 'dead' then now() end, case when name = 'dead' then now() end
     from feed_readers where name <> 'idle'`,
  );
  const pause = { days: 5, reason: "All posts have failed.", by: "webhooks" };
  expect(await pauseFailingSubscriptions(pool, pause)).toEqual(["failing"]);
  expect(await pauseFailingSubscriptions(pool, pause)).toEqual([]);
  expect(await findSubscription(pool, "failing")).toMatchObject({ pauseReason: pause.reason, pausedBy: "webhooks" });
  expect(await findSubscription(pool, "paused")).toMatchObject({ pauseReason: "a move", pausedBy: "Ada" });
});
