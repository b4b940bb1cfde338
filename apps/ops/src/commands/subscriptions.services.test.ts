import { createHash, createPublicKey, verify } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Ran, runOps } from "../testing/run-ops.ts";

const { pool, url } = useTestDatabase({ maxConnections: 2 });
let folder: string;
let environment: Record<string, string>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ops-subscriptions-"));
});
afterAll(() => rm(folder, { recursive: true }));

beforeEach(async () => {
  await pool.query("truncate subscriptions, feed_readers, booking_changes cascade");
  await pool.query("update feed_position set last_id = 0, kept_from = 1");
  environment = { DATABASE_URL: url, PARTNERS_FILE: join(folder, "partners.json") };
});

const ops = (...args: string[]): Promise<Ran> => runOps(["subscriptions", ...args], { environment });
const json = async (...args: string[]) => JSON.parse((await ops(...args, "--json")).stdout);
const readRow = async () => (await pool.query("select * from subscriptions")).rows[0];
const hook = "https://example.com/hook?key=a-key-of-theirs";

describe("add", () => {
  test("a subscription that is posted to gets a secret, which is shown once", async () => {
    const { exitCode, stdout } = await ops("add", "arrivals", "--url", hook, "--by", "Ada");
    expect(exitCode).toBe(0);
    const [secret = ""] = stdout.match(/whsec_\S+/) ?? [];
    expect(Buffer.from(secret.slice("whsec_".length), "base64")).toHaveLength(32);
    expect(await readRow()).toMatchObject({
      ...{ name: "arrivals", url: hook, mode: "latest", payload: "thin", signature: "hmac", signing_key: secret },
      ...{ partners: null, changes: null, countries: null, arrival_from_days: null, created_by: "Ada" },
    });
    for (const args of [["list"], ["show", "arrivals"], ["list", "--json"], ["show", "arrivals", "--json"]])
      expect((await ops(...args)).stdout).not.toContain(secret.slice(6));
  });

  test("of ed25519, only the public key is ever shown", async () => {
    const { publicKey, ...others } = await json("add", "arrivals", "--url", hook, "--signature", "ed25519");
    expect(others).toEqual({ name: "arrivals" });
    expect(publicKey).toMatch(/^whpk_[A-Za-z0-9+/]{43}=$/);
    expect(await json("show", "arrivals")).toMatchObject({ signature: "ed25519", publicKey });
  });

  test("a subscription without a URL gets a token, of which the digest is kept", async () => {
    const { token, ...others } = await json("add", "warehouse", "--payload", "full");
    expect(others).toEqual({ name: "warehouse" });
    expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
    const sha256 = createHash("sha256").update(token).digest();
    expect(await readRow()).toMatchObject({ url: null, mode: null, payload: "full", token_sha256: sha256 });
    expect(JSON.stringify(await readRow())).not.toContain(token);
  });

  test("filters are kept, each value once", async () => {
    await ops(
      ...["add", "arrivals", "--url", hook, "--partner", "acme", "--partner", "globe", "--partner", "acme"],
      ...["--change", "created", "--change", "updated", "--country", "gb", "--country", "GB"],
      ...["--arrival-from-days", "-1", "--arrival-to-days", "14", "--mode", "every"],
    );
    expect(await readRow()).toMatchObject({
      ...{ partners: ["acme", "globe"], changes: ["created", "updated"], countries: ["GB"] },
      ...{ arrival_from_days: -1, arrival_to_days: 14, mode: "every" },
    });
    expect((await ops("show", "arrivals")).stdout).toContain(
      "partners acme, globe; changes created, updated; destinations GB; arrivals from -1 to 14 days after",
    );
  });

  test.each([
    ["http://example.com/", "must begin with https://"],
    ["https://127.0.0.1/", "not public"],
    ["https://[::1]/", "not public"],
    ["https://169.254.169.254/latest", "not public"],
    ["https://10.1.2.3/", "not public"],
    ["example.com", "must be a URL"],
    ["ftp://example.com/", "must be a URL"],
  ])("%s is refused early, as the process would refuse it", async (bad, why) => {
    expect(await ops("add", "arrivals", "--url", bad)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(why),
    });
    expect(await readRow()).toBeUndefined();
  });

  test("http and private addresses are allowed where they are for the process", async () => {
    environment["WEBHOOKS_ALLOW_PRIVATE"] = "true";
    expect(await ops("add", "arrivals", "--url", "http://127.0.0.1:1/")).toMatchObject({ exitCode: 0 });
  });

  test("a partner that the partners file does not have is refused, if there is one", async () => {
    expect(await ops("add", "one", "--url", hook, "--partner", "acme")).toMatchObject({ exitCode: 0 });
    await writeFile(environment["PARTNERS_FILE"] ?? "", '{"partners":[]}');
    expect(await ops("add", "two", "--url", hook, "--partner", "acme")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("There is no partner acme in"),
    });
    await rm(environment["PARTNERS_FILE"] ?? "");
  });

  test("the name of another subscription or reader is refused", async () => {
    await pool.query("insert into feed_readers (name) values ('reader')");
    await ops("add", "arrivals", "--url", hook);
    for (const name of ["reader", "arrivals"])
      expect(await ops("add", name)).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining(`The name ${name} is taken`),
      });
  });

  test.each([
    ["a name with a full stop", ["a.b"]],
    ["an unknown change", ["a", "--change", "moved"]],
    ["a country that is none", ["a", "--country", "XX"]],
    ["half a window", ["a", "--arrival-to-days", "3"]],
    ["a window that ends before it begins", ["a", "--arrival-from-days", "3", "--arrival-to-days", "2"]],
    ["a signature without a URL", ["a", "--signature", "hmac"]],
    ["a mode without a URL", ["a", "--mode", "every"]],
    ["an unknown mode", ["a", "--url", hook, "--mode", "some"]],
  ])("%s is wrong usage", async (_, args) => {
    expect(await ops("add", ...args)).toMatchObject({ exitCode: 2 });
    expect(await readRow()).toBeUndefined();
  });
});

test("a list says how far each is, and hides queries of URLs", async () => {
  await ops("add", "arrivals", "--url", hook);
  await ops("add", "warehouse");
  await ops("add", "new", "--url", hook);
  await pool.query("update feed_position set last_id = 3");
  await pool.query(
    `insert into booking_changes (id, booking_id, partner, reference_kind, reference, revision, change, event_id, sequence,
       changed_at)
     select id, gen_random_uuid(), 'acme', 'trip', 'T', 1, 'created', gen_random_uuid(), id, now() - interval '5 min'
     from generate_series(1, 3) as id`,
  );
  await pool.query("insert into feed_readers (name, last_id) values ('arrivals', 1), ('warehouse', 3)");
  await pool.query(`insert into feed_deliveries (reader, booking_id, change_id, died_at)
    values ('arrivals', gen_random_uuid(), 1, now())`);
  await ops("pause", "warehouse", "--reason", "a move", "--by", "Ada");
  expect((await ops("list")).stdout.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
    ["SUBSCRIPTION", "URL", "STATE", "BEHIND", "PARKED", "DEAD"],
    ["arrivals", "https://example.com/hook", "reads", "2 changes, 5 min", "0", "1"],
    ["new", "https://example.com/hook", "has not begun", "0", "0"],
    ["warehouse", "(pulls)", "paused", "0", "0"],
    [""],
  ]);
  expect(await json("list")).toMatchObject([
    { name: "arrivals", url: hook, lagChanges: 2, parked: 0, dead: 1, breakerOpenedAt: null, failingSince: null },
    { name: "new", lagChanges: 0 },
    { name: "warehouse", url: null, pauseReason: "a move", pausedBy: "Ada", pausedAt: expect.any(String) },
  ]);
  expect((await ops("show", "warehouse")).stdout).toMatch(/Paused +\S+ by Ada: a move\n/);
});

test("without subscriptions, a list says so", async () => {
  expect(await ops("list")).toMatchObject({ exitCode: 0, stdout: "There are no subscriptions.\n" });
  expect(await json("list")).toEqual([]);
});

test("pause and resume say what they have done", async () => {
  await ops("add", "arrivals", "--url", hook);
  const print = async (command: string) => (await ops(command, "arrivals")).stdout;
  expect(await print("resume")).toBe("The subscription arrivals was not paused.\n");
  expect(await print("pause")).toBe("The subscription arrivals is now paused.\n");
  expect(await print("pause")).toBe("The subscription arrivals was already paused.\n");
  expect(await print("resume")).toBe("The subscription arrivals is delivered to again.\n");
  expect((await readRow()).paused_at).toBeNull();
});

describe("set", () => {
  const set = (...args: string[]) => ops("set", "arrivals", ...args);
  const insertChanges = (from: number, to: number) =>
    pool.query(
      `insert into booking_changes (id, booking_id, partner, reference_kind, reference, revision, change, event_id, sequence)
       select id, lpad(id::text, 32, '0')::uuid, 'acme', 'trip', 'T', 1, 'created', gen_random_uuid(), id
       from generate_series($1::integer, $2::integer) as id`,
      [from, to],
    );
  const readHanded = async () =>
    (await pool.query("select right(booking_id::text, 1)::integer as id, is_inside from feed_handed order by 1")).rows;

  test("what is given changes, and the rest stays, with the place and the secret", async () => {
    const { secret } = await json("add", "arrivals", "--url", hook, "--partner", "acme", "--country", "GB");
    await pool.query(`insert into feed_readers (name, last_id, failing_since, breaker_opened_at)
      values ('arrivals', 3, now(), now())`);
    const before = await readRow();
    const changed = await set("--url", "https://example.com/new", "--mode", "every", "--payload", "full");
    expect(changed.stdout.split("\n").map((line) => line.trim().split(/ {2,}/))).toEqual([
      ["Changed the subscription arrivals:"],
      ["URL", "https://example.com/new"],
      ["Delivery", "full, every, signed by hmac"],
      ["Filter", "partners acme; destinations GB"],
      [""],
    ]);
    const settings = { url: "https://example.com/new", mode: "every", payload: "full" };
    expect(await readRow()).toEqual({ ...before, ...settings, signing_key: secret, updated_at: expect.any(Date) });
    expect((await readRow()).updated_at).not.toEqual(before.updated_at);
    // That the old URL failed says nothing of the new one.
    const { rows } = await pool.query("select last_id, failing_since, breaker_opened_at from feed_readers");
    expect(rows).toEqual([{ last_id: 3, failing_since: null, breaker_opened_at: null }]);
  });

  test("each part of a filter is replaced, or taken away", async () => {
    await ops("add", "arrivals", "--url", hook, "--change", "created", "--country", "GB");
    await set("--change", "updated", "--country", "ES", "--arrival-from-days", "0", "--arrival-to-days", "14");
    await set("--arrival-to-days", "7");
    expect(await readRow()).toMatchObject({ arrival_from_days: 0, arrival_to_days: 7, changes: ["updated"] });
    await set("--all-changes", "--any-arrival");
    expect(await readRow()).toMatchObject({
      ...{ changes: null, countries: ["ES"], arrival_from_days: null, arrival_to_days: null, partners: null },
    });
    await set("--all-countries");
    expect(await readRow()).toMatchObject({ countries: null });
  });

  test("with its first filter, what it may have been given is remembered, so it hears of the end of that", async () => {
    await insertChanges(1, 1);
    await pool.query("update feed_position set last_id = 1");
    await ops("add", "arrivals", "--url", hook);
    await insertChanges(2, 4);
    await pool.query("update feed_position set last_id = 4");
    await pool.query("insert into feed_readers (name, last_id) values ('arrivals', 3)");
    await set("--country", "ES");
    // It may have been given the last one before a replay. It is not told that this one has left the filter.
    const handed = [2, 3, 4].map((id) => ({ id, is_inside: id < 4 }));
    expect(await readHanded()).toEqual(handed);
    await pool.query("delete from feed_handed where is_inside");
    await set("--country", "GB");
    expect(await readHanded()).toEqual(handed.slice(2));
  });

  test("with its first filter, all of the feed is remembered of a subscriber who pulls, and may have begun anywhere", async () => {
    await insertChanges(1, 2);
    await pool.query("update feed_position set last_id = 1");
    await ops("add", "arrivals");
    await pool.query("insert into feed_readers (name, last_id) values ('arrivals', 1)");
    await set("--country", "ES");
    expect(await readHanded()).toMatchObject([{ id: 1 }, { id: 2 }]);
  });

  test("bookings that have left the feed are remembered, too", async () => {
    await ops("add", "arrivals", "--url", hook, "--partner", "acme");
    await pool.query("insert into feed_readers (name, last_id) values ('arrivals', 9)");
    await pool.query("update feed_position set last_id = 9, kept_from = 10");
    await pool.query(
      `insert into bookings (booking_key, booking_id, partner, reference_kind, reference, state, event_id, sequence,
         last_sequence, revision, created_at, updated_at)
       select decode(lpad(id::text, 32, '0'), 'hex'), lpad(id::text, 32, '0')::uuid, partner, 'trip', 'T', 'active',
         gen_random_uuid(), 1, 1, 1, now(), now()
       from (values (1, 'acme'), (2, 'globe')) as booking (id, partner)`,
    );
    await set("--country", "ES");
    expect(await readHanded()).toEqual([{ id: 1, is_inside: true }]);
    await pool.query("delete from bookings");
  });

  test("nobody posts by the old filter while that is remembered", async () => {
    await ops("add", "arrivals", "--url", hook);
    await pool.query(`insert into feed_readers (name, active_id) values ('arrivals', gen_random_uuid())`);
    const setting = set("--country", "ES");
    await waitFor(async () => expect(await readRow()).toMatchObject({ pause_reason: "Its filter is being changed." }));
    expect(await readRow()).toMatchObject({ countries: null });
    await pool.query("update feed_readers set active_id = null");
    expect(await setting).toMatchObject({ exitCode: 0, stdout: expect.not.stringContaining("paused") });
    expect(await readRow()).toMatchObject({ countries: ["ES"], paused_at: null, pause_reason: null, paused_by: null });
  });

  describe("with a trigger", () => {
    async function trigger(event: string, body: string): Promise<void> {
      await pool.query(
        `create function interfere() returns trigger language plpgsql as $$ begin ${body} end $$;
         create trigger interferes before ${event} for each row execute function interfere()`,
      );
    }
    const handed = "insert on feed_handed";

    beforeEach(async () => {
      await ops("add", "arrivals", "--url", hook);
      await insertChanges(1, 1);
      await pool.query("insert into feed_readers (name, last_id) values ('arrivals', 1)");
    });
    afterEach(() => pool.query("drop function interfere cascade"));

    test("a first filter that can't be set does not leave the subscription paused", async () => {
      await trigger(handed, "raise exception using errcode = '57014';");
      expect(await set("--country", "ES")).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("57014") });
      expect(await readRow()).toMatchObject({ countries: null, paused_at: null, pause_reason: null });
    });

    test("a long feed has more time than other statements", async () => {
      await trigger(
        handed,
        "if current_setting('statement_timeout') <> '15min' then raise 'too short'; end if; return new;",
      );
      expect(await set("--country", "ES")).toMatchObject({ exitCode: 0 });
    });

    test("a subscription that has gone meanwhile was not changed", async () => {
      await trigger("update on subscriptions", "return null;");
      const stderr = expect.stringContaining("There is no subscription arrivals");
      expect(await set("--payload", "full")).toMatchObject({ exitCode: 1, stderr });
    });
  });

  test("one that a killed change has left paused is resumed by the next", async () => {
    await ops("add", "arrivals", "--url", hook);
    await pool.query("update subscriptions set paused_at = now(), pause_reason = 'Its filter is being changed.'");
    expect(await set("--country", "ES")).toMatchObject({ exitCode: 0 });
    expect(await readRow()).toMatchObject({ countries: ["ES"], paused_at: null, pause_reason: null });
  });

  test("one that is paused stays so", async () => {
    await ops("add", "arrivals", "--url", hook);
    await ops("pause", "arrivals", "--reason", "a move");
    expect((await set("--country", "ES")).stdout).toMatch(/State +paused/);
    expect(await readRow()).toMatchObject({ countries: ["ES"], pause_reason: "a move" });
  });

  test("what can't be changed is refused, with the reason", async () => {
    await ops("add", "pulls", "--partner", "acme", "--partner", "globe");
    await ops("add", "all", "--url", hook);
    for (const [args, why] of [
      [["pulls", "--url", hook], "pulls, which can't be changed"],
      [["pulls", "--mode", "every"], "pulls, which can't be changed"],
      [["pulls", "--partner", "acme"], "knows bookings of acme, globe, and must hear"],
      [["all", "--partner", "acme"], "knows bookings of all partners, and must hear"],
      [["all", "--url", "http://example.com/"], "must begin with https://"],
      [["all", "--arrival-to-days", "3"], "Give both"],
      [["all", "--arrival-from-days", "3", "--arrival-to-days", "2"], "would end before it begins: from 3 to 2"],
    ] as const)
      expect(await ops("set", ...args)).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(why) });
    expect(await ops("set", "pulls", "--all-partners")).toMatchObject({ exitCode: 0 });
    expect((await pool.query("select partners from subscriptions")).rows).toEqual([
      { partners: null },
      { partners: null },
    ]);
  });

  test.each([
    ["nothing", []],
    ["a part of the filter given and taken away", ["--country", "GB", "--all-countries"]],
    ["a window given and taken away", ["--arrival-to-days", "3", "--any-arrival"]],
  ])("%s is wrong usage", async (_, args) => {
    await ops("add", "arrivals", "--url", hook);
    expect(await set(...args)).toMatchObject({ exitCode: 2 });
  });
});

describe("rotate", () => {
  test("the old secret stays in use for as long as is said", async () => {
    const { secret: old } = await json("add", "arrivals", "--url", hook);
    const { secret, previousUntil } = await json("rotate", "arrivals", "--keep-hours", "2");
    expect(await readRow()).toMatchObject({ signing_key: secret, previous_signing_key: old });
    expect(new Date(previousUntil)).toEqual((await readRow()).previous_key_until);
    expect(secret).not.toBe(old);
    expect((await ops("show", "arrivals")).stdout).toMatch(/Old key +in use until /);
    expect((await ops("rotate", "arrivals")).stdout).toMatch(/new secret:\n\n {2}whsec_[\s\S]*stays in use until /);
  });

  test("a token that leaked is refused at once", async () => {
    const { token: old } = await json("add", "warehouse");
    const { token, previousUntil } = await json("rotate", "warehouse", "--keep-hours", "0");
    expect([previousUntil, token === old]).toEqual([null, false]);
    const { rows } = await pool.query("select previous_key_until <= now() as over from subscriptions");
    expect(rows).toEqual([{ over: true }]);
  });
});

describe("test", () => {
  let server: Server;
  let got: { headers: IncomingHttpHeaders; body: string } | undefined;
  let status: number;

  beforeEach(async () => {
    status = 204;
    got = undefined;
    server = createServer(async (request, response) => {
      got = { headers: request.headers, body: await text(request) };
      response.writeHead(status).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    environment["WEBHOOKS_ALLOW_PRIVATE"] = "true";
    const { port } = server.address() as AddressInfo;
    await ops("add", "arrivals", "--url", `http://127.0.0.1:${port}/hook`, "--signature", "ed25519");
  });
  afterEach(() => server.close());

  test("the subscriber gets a signed event that is about no booking, and its answer is shown", async () => {
    const { exitCode, stdout } = await ops("test", "arrivals");
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^arrivals answered 204 after \d+ ms\.\n$/);
    const { headers, body = "" } = got ?? {};
    const event = JSON.parse(body);
    expect(event).toMatchObject({ specversion: "1.0", type: "booking.test" });
    expect(headers?.["webhook-id"]).toBe(`arrivals-${event.id}`);
    const { publicKey } = await json("show", "arrivals");
    const x = Buffer.from(publicKey.slice("whpk_".length), "base64").toString("base64url");
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    const signed = `${headers?.["webhook-id"]}.${headers?.["webhook-timestamp"]}.${body}`;
    const [, signature = ""] = String(headers?.["webhook-signature"]).split("v1a,");
    expect(verify(null, Buffer.from(signed), key, Buffer.from(signature, "base64"))).toBe(true);
  });

  test("an answer that is no success, and none at all, are failures", async () => {
    status = 500;
    expect(await ops("test", "arrivals")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/did not take it/),
    });
    expect(await json("test", "arrivals")).toMatchObject({ status: 500, failure: "http-500" });
    status = 410;
    expect(await ops("test", "arrivals")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/would pause it/),
    });
    server.close();
    server.closeAllConnections();
    expect(await json("test", "arrivals")).toMatchObject({ status: null, failure: "ECONNREFUSED" });
  });

  test("the process's rules hold here, too", async () => {
    environment["WEBHOOKS_ALLOW_PRIVATE"] = "false";
    expect(await ops("test", "arrivals")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/\(not-https\)/),
    });
    expect(got).toBeUndefined();
  });

  test("a subscriber that pulls has nothing to be posted to", async () => {
    await ops("add", "warehouse");
    expect(await ops("test", "warehouse")).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/pulls/) });
  });
});

test("what was posted since a time is posted again", async () => {
  await ops("add", "arrivals", "--url", hook);
  expect(await ops("replay", "arrivals", "--since", "1h")).toMatchObject({
    exitCode: 2,
    stderr: expect.stringMatching(/Add --yes/),
  });
  expect(await ops("replay", "arrivals", "--since", "1h", "--yes")).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/Nothing has/),
  });
  await pool.query(
    `insert into booking_changes (id, booking_id, partner, reference_kind, reference, revision, change, event_id, sequence)
     select id, gen_random_uuid(), 'acme', 'trip', 'T', 1, 'created', gen_random_uuid(), id from generate_series(1, 3) as id`,
  );
  await pool.query("update feed_position set last_id = 3");
  await pool.query("insert into feed_readers (name, last_id) values ('arrivals', 3)");
  expect(await json("replay", "arrivals", "--since", "1h", "--yes")).toEqual({ changes: 3 });
  expect((await pool.query("select last_id from feed_readers")).rows).toEqual([{ last_id: 0 }]);
  await ops("add", "warehouse");
  expect(await ops("replay", "warehouse", "--since", "1h", "--yes")).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/pulls/),
  });
});

test("a subscription's dead letters are listed and replayed", async () => {
  await ops("add", "arrivals", "--url", hook);
  expect(await ops("dead-letters", "arrivals")).toMatchObject({ exitCode: 0, stdout: "No dead letters.\n" });
  await pool.query("insert into feed_readers (name, last_id) values ('arrivals', 3)");
  await pool.query(`insert into feed_deliveries (reader, booking_id, change_id, died_at)
    values ('arrivals', gen_random_uuid(), 2, now())`);
  expect(await json("dead-letters", "arrivals")).toMatchObject([{ changeId: 2 }]);
  expect(await json("dead-letters", "arrivals", "--replay", "2", "--yes")).toEqual({ replayed: 1 });
});

test("before a question it is told that there is no such subscription", async () => {
  expect(await ops("remove", "typo")).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("typo") });
});

test("a subscription is removed once the process has let go of it", async () => {
  await ops("add", "arrivals", "--url", hook);
  await pool.query(`insert into feed_readers (name, active_id, seen_at)
    values ('arrivals', gen_random_uuid(), now() - interval '9 seconds')`);
  const removing = ops("remove", "arrivals", "--yes");
  expect(await removing).toMatchObject({ exitCode: 0, stdout: "Removed the subscription arrivals.\n" });
  const { rows } = await pool.query("select name from subscriptions union all select name from feed_readers");
  expect(rows).toEqual([]);
});

test.each([
  ["show"],
  ["test"],
  ["pause"],
  ["resume"],
  ["rotate"],
  ["set", "--payload", "full"],
  ["remove", "--yes"],
  ["replay", "--since", "1h", "--yes"],
  ["dead-letters"],
])("%s names no subscription that does not exist", async (command, ...more) => {
  expect(await ops(command, "unknown", ...more)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("There is no subscription unknown."),
  });
});
