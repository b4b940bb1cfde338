import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { freePort, redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { createProducer } from "@booking-events/queue";
import { findDeadLetter, writeDeadLetter } from "@booking-events/store";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runOps } from "../testing/run-ops.ts";

const { pool, url } = useTestDatabase({ maxConnections: 2 });
let environment: Record<string, string>;
let folder: string;

beforeEach(async () => {
  await pool.query(
    "truncate operator_actions, dead_letters, booking_events, bookings, subscriptions, feed_readers cascade",
  );
  folder = mkdtempSync(join(tmpdir(), "ops-audit-"));
  environment = {
    ...{ DATABASE_URL: url, REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix() },
    PARTNERS_FILE: join(folder, "partners.json"),
  };
});

afterEach(() => rmSync(folder, { recursive: true }));

function ops(args: string[], more: Record<string, string> = {}, stdin?: string) {
  return runOps(args, { environment: { ...environment, ...more }, ...(stdin === undefined ? {} : { stdin }) });
}

async function audit(...args: string[]) {
  const { exitCode, stdout, stderr } = await ops(["audit", "--json", ...args]);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  return JSON.parse(stdout) as Record<string, unknown>[];
}

const eventId = "0199a000-0000-7000-8000-000000000001";

async function insertLetter(reference: string) {
  await writeDeadLetter(pool, {
    ...{ eventId, partner: "acme", kind: "create", referenceKind: "trip", reference, sequence: 1 },
    ...{ errorCode: "TypeError", error: "The worker failed.", attempts: 15 },
    envelope: Buffer.from("{}"),
  });
}

async function insertBooking() {
  await pool.query(
    `insert into bookings (booking_key, booking_id, partner, reference_kind, reference, state, event_id, sequence,
       last_sequence, revision, created_at, updated_at)
     values ('\\x01', gen_random_uuid(), 'acme', 'trip', 'T', 'active', gen_random_uuid(), 1, 1, 1, now(), now())`,
  );
}

describe("who acts", () => {
  test.each([
    [["--by", "ada"], { OPERATOR: "grace" }, "ada"],
    [[], { OPERATOR: "grace" }, "grace"],
  ])("with %j and %j it is %s", async (args, more, by) => {
    expect((await ops(["queue", "pause", ...args], more)).stderr).toBe("");
    expect(await audit()).toMatchObject([{ by, command: "queue pause", outcome: "done" }]);
    expect(await audit("--by", by)).toHaveLength(1);
    expect(await audit("--by", "another")).toEqual([]);
  });

  test("without them it is the system's user, with a remark", async () => {
    const { stderr } = await ops(["queue", "pause"], { OPERATOR: "" });
    const { username } = userInfo();
    expect(stderr).toBe(
      `Recorded as done by ${username}, the system's user. Say who you are: --by NAME, or OPERATOR.\n`,
    );
    expect(await audit()).toMatchObject([{ by: username }]);
  });

  test("if OPERATOR_REQUIRED is true, nothing is done without them", async () => {
    const required = { OPERATOR: " ", OPERATOR_REQUIRED: "true" };
    const refused = await ops(["partners", "add", "acme"], required);
    expect(refused).toEqual({
      exitCode: 2,
      stdout: "",
      stderr: "Say who you are: --by NAME, or OPERATOR. Nothing was done.\n",
    });
    expect((await ops(["feed", "list"], required)).stdout).toBe("No program reads the feed.\n");
    expect((await ops(["partners", "add", "acme", "--by", "ada"], required)).exitCode).toBe(0);
    expect(await audit()).toMatchObject([{ by: "ada", command: "partners add" }]);
  });
});

test("an action that PostgreSQL takes is recorded in its transaction: neither without the other", async () => {
  await ops(["subscriptions", "add", "warehouse"]);
  await pool.query(`create function refuse() returns trigger language plpgsql as $$ begin raise 'full'; end $$;
    create trigger refuse before update on operator_actions for each row execute function refuse()`);
  try {
    expect((await ops(["subscriptions", "pause", "warehouse"])).exitCode).toBe(1);
  } finally {
    await pool.query("drop function refuse cascade");
  }
  const { rows } = await pool.query("select paused_at from subscriptions");
  expect(rows).toEqual([{ paused_at: null }]);
  // Its end could not be recorded.
  expect((await audit())[0]).toMatchObject({ command: "subscriptions pause", outcome: "unknown", endedAt: null });
});

test("what is refused is recorded with the reason", async () => {
  await ops(["feed", "reset", "nobody", "--yes"]);
  expect(await audit()).toMatchObject([
    {
      ...{ command: "feed reset", arguments: { reader: "nobody" }, outcome: "refused" },
      ...{ problem: "There is no reader nobody. List all: ops feed list", by: "tester", did: {} },
    },
  ]);
});

test("what failed is recorded with the reason, and with what it had done", async () => {
  await insertLetter("TRIP-1");
  const { stderr } = await ops(["dead-letters", "replay", "--all", "--yes"], {
    REDIS_URL: `redis://127.0.0.1:${await freePort()}`,
  });
  expect(stderr).toContain("Nothing was replayed.");
  const [action] = await audit();
  expect(action).toMatchObject({
    ...{ command: "dead-letters replay", arguments: { events: 1, eventIds: [eventId] } },
    ...{ outcome: "refused", problem: expect.stringContaining("Nothing was replayed."), did: {} },
  });
  expect((await findDeadLetter(pool, eventId))?.replayedAt).toBeNull();
});

test("partners and the queue can be changed while PostgreSQL is down, and the operator reads that it was not recorded", async () => {
  const down = { DATABASE_URL: `postgres://127.0.0.1:${await freePort()}/x` };
  const { exitCode, stderr } = await ops(["partners", "add", "acme"], down);
  expect(exitCode).toBe(0);
  expect(stderr).toMatch(/^This was not recorded in operator_actions\. PostgreSQL at .+ can't be reached/m);
  expect((await ops(["queue", "pause"], { DATABASE_URL: "" })).stderr).toMatch(
    /^This was not recorded in operator_actions\. DATABASE_URL is missing, or not a URL of PostgreSQL\.$/m,
  );
  expect(await audit()).toEqual([]);
});

test("what only looks is not recorded", async () => {
  await insertLetter("TRIP-1");
  const looks = [
    "status",
    "doctor",
    "partners list",
    "events list",
    "dead-letters list",
    "bookings verify",
    "feed list",
  ];
  const dryRuns = [
    "bookings repair --all",
    "bookings renormalise --dry-run",
    "retention --dry-run",
    "queue pause --help",
  ];
  const guests = ["guests find --reference TRIP-1", "guests erase --reference TRIP-1 --reason r --dry-run"];
  for (const command of [...looks, ...dryRuns, ...guests]) await ops(command.split(" "));
  expect(await audit()).toEqual([]);
});

/** Everything that changes something, or shows guests' values. */
async function actWithEverything(guest: { email: string; reference: string }): Promise<string[]> {
  const secrets: string[] = [];
  const shown = async (...args: string[]) => {
    const { stdout, stderr, exitCode } = await ops(args);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    const { secret, token } = JSON.parse(stdout) as { secret?: string; token?: string };
    secrets.push(secret ?? token ?? "");
  };
  const act = async (...args: string[]) => {
    const { stderr } = await ops(args);
    expect(stderr).not.toContain("Unexpected error");
  };
  await shown("partners", "add", "acme", "--name", guest.email, "--json");
  await act("partners", "set", "acme", "--rate", "5", "--name", guest.email);
  await shown("partners", "rotate", "acme", "--overlap", "0", "--json");
  await act("partners", "revoke", "acme", "s1", "--yes");
  await act("partners", "disable", "acme");
  await act("partners", "enable", "acme");
  await shown("subscriptions", "add", "hook", "--url", `https://example.com/${guest.email}?key=hunter2`, "--json");
  await shown("subscriptions", "add", "pull", "--json");
  await shown("subscriptions", "rotate", "pull", "--json");
  await act("subscriptions", "pause", "pull", "--reason", guest.email);
  await act("subscriptions", "resume", "pull");
  await act("subscriptions", "set", "hook", "--url", `https://example.com/${guest.reference}?key=hunter2`);
  await act("subscriptions", "replay", "hook", "--since", "1h", "--yes");
  await act("subscriptions", "dead-letters", "hook", "--replay-all", "--yes");
  await act("subscriptions", "dead-letters", "hook", "--discard", "1", "--yes");
  await act("subscriptions", "test", "hook");
  await act("subscriptions", "remove", "pull", "--yes");
  await act("feed", "reset", "nobody", "--yes");
  await act("feed", "replay", "nobody", "--since", "1h", "--yes");
  await act("feed", "remove", "nobody", "--yes");
  await insertLetter(guest.reference);
  await act("events", "show", eventId, "--payload");
  await act("dead-letters", "show", eventId, "--payload");
  await act("dead-letters", "replay", eventId, "--yes");
  await act("dead-letters", "discard", eventId, "--yes", "--reason", guest.email);
  await insertBooking();
  await act("bookings", "repair", "acme", guest.reference, "--yes");
  await act("bookings", "renormalise", "--partner", "acme");
  await act("bookings", "restore", "acme", guest.reference, "--at", "1h", "--yes");
  await act("export", "events", "--csv", "--partner", "acme", "--payload");
  await insertLetter(guest.reference);
  await act("guests", "erase", "--email", guest.email, "--reason", guest.email, "--yes");
  await act("guests", "erase", "--reference", guest.reference, "--reason", guest.email, "--yes", "--rewrite");
  await act("queue", "pause");
  await act("queue", "resume");
  await act("queue", "retry-now");
  await act("maintain");
  await act("migrate");
  const line = { consumerTripPartnerExternalReference: guest.reference, consumerEmail: guest.email };
  await ops(["import", "-", "--partner", "acme", "--as-of", new Date().toISOString()], {}, `${JSON.stringify(line)}\n`);
  return secrets;
}

const recorded = [
  ...["partners add", "partners set", "partners rotate", "partners revoke", "partners disable", "partners enable"],
  ...["subscriptions add", "subscriptions rotate", "subscriptions pause", "subscriptions resume"],
  ...["subscriptions replay", "subscriptions dead-letters --replay", "subscriptions test", "subscriptions remove"],
  ...["feed reset", "feed replay", "feed remove", "dead-letters replay", "dead-letters discard", "bookings repair"],
  ...["bookings restore", "export events", "subscriptions set"],
  ...["events show --payload", "dead-letters show --payload"],
  ...["bookings renormalise", "guests erase", "guests erase --rewrite", "queue pause", "queue resume"],
  ...["queue retry-now", "maintain", "migrate", "import"],
];

test("every action is recorded, without a guest's value and without a secret", async () => {
  const producer = createProducer({
    ...{ redisServers: redisUrl(), prefix: environment["QUEUE_PREFIX"] ?? "", onError: () => {} },
  });
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  await producer.close();
  const guest = { email: "canary.guest@example.com", reference: "CANARY-TRIP-1" };
  const secrets = await actWithEverything(guest);
  expect(secrets).toHaveLength(5);
  const actions = await audit();
  expect(new Set(actions.map(({ command }) => command))).toEqual(new Set(recorded));
  expect(actions.filter(({ outcome }) => outcome === "unknown")).toEqual([]);
  const { rows } = await pool.query<{ text: string }>("select operator_actions::text as text from operator_actions");
  const everything = rows.map(({ text }) => text).join("\n");
  for (const value of [...secrets, guest.email, guest.reference, "canary", "hunter2"])
    expect(everything.toLowerCase()).not.toContain(value.toLowerCase());
  const { stdout } = await runOps(["audit"], { environment, columns: 80 });
  expect(
    stripVTControlCharacters(stdout)
      .split("\n")
      .filter((line) => line.length > 80),
  ).toEqual([]);
  expect(stdout).toMatch(/^COMMAND +bookings restore$/m);
}, 120_000);

test.each([
  ["a partner that is a guest's address", "bookings restore canary@example.com acme --at 1h --yes", "has no bookings"],
  ["a partner that is a reference", "bookings restore canary-1 acme --at 1h --yes", "has no bookings"],
  [
    "a secret instead of its id",
    "bookings restore acme --secret canary-secret --at 1h --yes",
    "by this secret of acme",
  ],
  ["a partner to repair that is a reference", "bookings repair canary-1 acme --yes", "has no bookings"],
  ["no id of a partner to hold", "partners hold Canary", "lower-case letters"],
  ["no id of a partner to add", "partners add canary@example.com", "lower-case letters"],
  ["no id of a partner to set", "partners set Canary --rate 5", "lower-case letters"],
  ["no id of a partner to rotate", "partners rotate canary@example.com", "lower-case letters"],
  ["a secret to revoke instead of its id", "partners revoke acme canary-secret", "no secret"],
])("what names nothing is not recorded: %s", async (_, args, why) => {
  await ops(["partners", "add", "acme"]);
  await insertBooking();
  await pool.query("truncate operator_actions");
  expect(await ops(args.split(" "))).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(why) });
  expect((await pool.query("select from operator_actions")).rowCount).toBe(0);
});

test("of subscriptions set it is recorded what changed, but of a URL only the origin", async () => {
  await ops(["subscriptions", "add", "hook", "--url", "https://example.com/old?key=hunter1"]);
  const url = "https://new.example.com/hook?key=hunter2";
  const changes = ["--url", url, "--payload", "full", "--change", "deleted", "--country", "GB"];
  expect((await ops(["subscriptions", "set", "hook", ...changes])).exitCode).toBe(0);
  expect((await audit())[0]).toMatchObject({
    ...{ command: "subscriptions set", by: "tester", outcome: "done", problem: null },
    arguments: {
      ...{ subscription: "hook", origin: "https://new.example.com", payload: "full" },
      ...{ changes: ["deleted"], countries: ["GB"] },
    },
  });
  await ops(["subscriptions", "set", "hook", "--partner", "acme"]);
  expect((await audit())[0]).toMatchObject({
    ...{ command: "subscriptions set", arguments: { subscription: "hook", partners: ["acme"] }, outcome: "refused" },
    problem: expect.stringContaining("no partner can be left out"),
  });
});
