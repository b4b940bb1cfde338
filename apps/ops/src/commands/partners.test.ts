import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { digestSecret, readPartnersFile } from "@booking-events/partners";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Ran, runOps } from "../testing/run-ops.ts";

const now = new Date("2026-11-20T12:00:00Z");
let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "ops-partners-"));
  path = join(folder, "partners.json");
});

afterEach(() => rm(folder, { recursive: true }));

async function partners(...args: string[]): Promise<Ran> {
  return runOps(["partners", ...args], { environment: { PARTNERS_FILE: path }, now });
}

async function ok(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await partners(...args);
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  return stdout;
}

const secretPattern = /(?<![\w-])[\w-]{43}(?![\w-])/g;

function secretIn(text: string): string {
  const secrets = text.match(secretPattern) ?? [];
  expect(secrets).toHaveLength(1);
  return secrets[0] ?? "";
}

test("add shows the secret once, and stores its digest", async () => {
  const { exitCode, stdout, stderr } = await partners("add", "acme", "--name", "Acme Travel");
  expect(exitCode).toBe(0);
  expect(stderr).toMatch(/^Created .* which only this user can read/m);
  const secret = secretIn(stdout);
  for (const kind of ["create", "update", "delete"]) expect(stdout).toContain(`/booking-event/${kind}/<secret>`);
  expect(readPartnersFile(path).partners).toEqual([
    {
      id: "acme",
      name: "Acme Travel",
      enabled: true,
      kinds: ["create", "update", "delete"],
      rateLimit: { perSecond: 200, burst: 400 },
      bytesPerDay: 5_000_000_000,
      held: false,
      test: false,
      secrets: [{ id: "s1", sha256: digestSecret(secret), createdAt: now.toISOString(), expiresAt: null }],
    },
  ]);
  expect(await readFile(path, "utf8")).not.toContain(secret);
});

test("add --json prints one object and nothing else, even for the first partner", async () => {
  const added = JSON.parse(await ok("add", "acme", "--json"));
  expect(added).toEqual({ partner: "acme", secretId: "s1", secret: expect.stringMatching(/^[\w-]{43}$/) });
  expect(readPartnersFile(path).partners[0]?.secrets[0]?.sha256).toBe(digestSecret(added.secret));
});

test("add has an option for every property of a partner", async () => {
  const options = ["--kinds", "delete,create", "--rate", "0.5", "--burst", "3", "--quota", "1.5GB", "--expires", "90d"];
  const added = JSON.parse(await ok("add", "acme", ...options, "--json"));
  expect(added.expiresAt).toBe("2027-02-18T12:00:00.000Z");
  expect(readPartnersFile(path).partners[0]).toMatchObject({
    name: "acme",
    kinds: ["create", "delete"],
    rateLimit: { perSecond: 0.5, burst: 3 },
    bytesPerDay: 1_500_000_000,
    secrets: [{ expiresAt: "2027-02-18T12:00:00.000Z" }],
  });
});

test("the default burst is twice the rate", async () => {
  await ok("add", "slow", "--rate", "0.1");
  await ok("add", "fast", "--rate", "1000");
  expect(readPartnersFile(path).partners.map(({ rateLimit }) => rateLimit.burst)).toEqual([1, 2_000]);
});

test("rotate adds a secret, and says how long the old one is valid: a day by default", async () => {
  const first = secretIn(await ok("add", "acme"));
  const shown = await ok("rotate", "acme");
  expect(shown).toContain("valid until 2026-11-21T12:00:00Z");
  const third = JSON.parse(await ok("rotate", "acme", "--overlap", "30m", "--json"));
  expect(third).toEqual({
    partner: "acme",
    secretId: "s3",
    secret: expect.any(String),
    previousSecretsExpireAt: "2026-11-20T12:30:00.000Z",
  });
  expect(readPartnersFile(path).partners[0]?.secrets).toMatchObject([
    { id: "s1", sha256: digestSecret(first), expiresAt: "2026-11-20T12:30:00.000Z" },
    { id: "s2", sha256: digestSecret(secretIn(shown)), expiresAt: "2026-11-20T12:30:00.000Z" },
    { id: "s3", sha256: digestSecret(third.secret), expiresAt: null },
  ]);
});

test("rotate --expires lets the new secret expire", async () => {
  await ok("add", "acme");
  expect(await ok("rotate", "acme", "--expires", "90d")).toContain(
    "Partner acme has a new secret s2, which expires at 2027-02-18T",
  );
  const { expiresAt } = JSON.parse(await ok("rotate", "acme", "--expires", "2027-01-01", "--json"));
  expect(expiresAt).toBe("2027-01-01T00:00:00.000Z");
  expect(readPartnersFile(path).partners[0]?.secrets).toMatchObject([
    { expiresAt: "2026-11-21T12:00:00.000Z" },
    { expiresAt: "2026-11-21T12:00:00.000Z" },
    { expiresAt: "2027-01-01T00:00:00.000Z" },
  ]);
});

test("rotate without an overlap names each secret whose revocation could not be recorded", async () => {
  await ok("add", "acme");
  await ok("rotate", "acme");
  expect((await partners("rotate", "acme", "--overlap", "0")).stderr).toContain(
    "Then run: ops partners revoke acme s1; ops partners revoke acme s2\n",
  );
});

test("revoke asks before it revokes the last valid secret", async () => {
  await ok("add", "acme");
  await ok("rotate", "acme");
  expect((await partners("revoke", "acme", "s1")).stderr).toBe(
    "Warning: the revocation could not be recorded in Redis, so an old partners file could bring the secret back. " +
      "Set REDIS_URL as for ingest. Then run: ops partners revoke acme s1\n" +
      "This was not recorded in operator_actions. DATABASE_URL is missing, or not a URL of PostgreSQL.\n",
  );
  const secrets = () => readPartnersFile(path).partners[0]?.secrets;
  const before = secrets();
  const asked = await partners("revoke", "acme", "s2");
  expect(asked).toMatchObject({ exitCode: 2, stdout: "" });
  expect(asked.stderr).toMatch(/last valid secret of partner acme, .* Add --yes\. Nothing was done\.$/m);
  expect(secrets()).toEqual(before);
  const { exitCode, stderr } = await partners("revoke", "acme", "s2", "--yes");
  expect({ exitCode, stderr }).toEqual({
    exitCode: 0,
    stderr: expect.stringMatching(/^Warning: partner acme has no/m),
  });
  expect(await ok("revoke", "acme", "s2")).toMatch(/was not valid any more/);
});

test("hold and release change the file, and list and status show it", async () => {
  await ok("add", "acme");
  expect(await ok("hold", "acme")).toBe(
    "Partner acme is now on hold: its events get 503, until: ops partners release acme\n",
  );
  expect(await ok("hold", "acme")).toMatch(/^Partner acme is already on hold/);
  expect(readPartnersFile(path).partners).toMatchObject([{ id: "acme", held: true, enabled: true }]);
  expect(await ok("list")).toMatch(/acme .* on hold /);
  expect(await ok("release", "acme")).toBe("Partner acme is now released: its events are accepted.\n");
  expect(await ok("release", "acme")).toMatch(/^Partner acme is already released/);
  expect(readPartnersFile(path).partners).toMatchObject([{ held: false }]);
  expect(await partners("hold", "nobody")).toMatchObject({ exitCode: 1 });
});

test("in a narrow terminal, list prints each secret as a record", async () => {
  await ok("add", "acme", "--name", "A partner with a long name");
  const environment = { PARTNERS_FILE: path };
  const narrow = await runOps(["partners", "list"], { environment, now, columns: 60 });
  expect(narrow.stdout).toMatch(/^NAME +A partner with a long name$/m);
  expect(narrow.stdout).toMatch(/^RATE +200\/s, burst 400$/m);
  const wide = await runOps(["partners", "list"], { environment, now, columns: 200 });
  expect(wide.stdout.split("\n")).toHaveLength(3);
});

test("rotate says if the partner is disabled, with --json on stderr too", async () => {
  await ok("add", "acme");
  await ok("disable", "acme");
  const { stdout, stderr } = await partners("rotate", "acme", "--json");
  expect(stderr).toMatch(/partner acme is disabled/);
  expect(JSON.parse(stdout)).toMatchObject({ secretId: "s2" });
});

test("set changes what is given, and keeps the rest", async () => {
  await ok("add", "acme", "--name", "Acme Travel", "--kinds", "create", "--rate", "50");
  expect(await ok("set", "acme", "--rate", "500")).toBe(
    "Partner acme (Acme Travel) may send create, 500/s, burst 100, 5 GB a day.\n",
  );
  expect(await ok("set", "acme", "--kinds", "create,update,delete", "--burst", "1000")).toBe(
    "Partner acme (Acme Travel) may send all, 500/s, burst 1000, 5 GB a day.\n",
  );
  expect(await ok("set", "acme", "--quota", "250 MB")).toBe(
    "Partner acme (Acme Travel) may send all, 500/s, burst 1000, 250 MB a day.\n",
  );
  expect(readPartnersFile(path).partners[0]).toMatchObject({
    ...{ name: "Acme Travel", kinds: ["create", "update", "delete"] },
    rateLimit: { perSecond: 500, burst: 1_000 },
    bytesPerDay: 250_000_000,
    secrets: [{ id: "s1", expiresAt: null }],
  });
  expect((await partners("set", "acme")).exitCode).toBe(2);
  expect(await ok("set", "acme", "--country", "gb")).toBe(
    "Partner acme (Acme Travel) may send all, 500/s, burst 1000, 250 MB a day, with phone numbers of GB where they have " +
      "no country code.\n",
  );
  expect(await ok("set", "acme", "--burst", "900")).toContain("of GB");
  expect(await ok("list")).toMatch(/ GB +s1 /);
  expect(await ok("set", "acme", "--no-country")).not.toContain("GB");
  expect(readPartnersFile(path).partners[0]).not.toHaveProperty("country");
  expect((await partners("set", "acme", "--country", "Atlantis")).exitCode).toBe(2);
  await ok("add", "other", "--country", "FR");
  expect(readPartnersFile(path).partners[1]).toMatchObject({ id: "other", country: "FR" });
  expect((await partners("set", "nobody", "--rate", "1")).exitCode).toBe(1);
});

test("list shows each partner's secrets and their state, and no part of a digest", async () => {
  await ok("add", "acme", "--name", "Acme Travel", "--kinds", "create");
  await ok("rotate", "acme", "--overlap", "1h");
  await ok("revoke", "acme", "s2");
  await ok("add", "other");
  await ok("disable", "other");
  const table = await ok("list");
  expect(table).toBe(
    [
      "PARTNER  NAME         ENABLED  KINDS   RATE              QUOTA       COUNTRY  SECRET  CREATED     VALID                       LAST USED",
      "acme     Acme Travel  yes      create  200/s, burst 400  5 GB a day           s1      2026-11-20  until 2026-11-20T13:00:00Z  unknown",
      "acme     Acme Travel  yes      create  200/s, burst 400  5 GB a day           s2      2026-11-20  revoked                     unknown",
      "other    other        no       all     200/s, burst 400  5 GB a day           s1      2026-11-20  yes                         unknown",
      "",
    ].join("\n"),
  );
  const json = await ok("list", "--json");
  expect(JSON.parse(json)).toMatchObject([
    {
      id: "acme",
      name: "Acme Travel",
      enabled: true,
      kinds: ["create"],
      rateLimit: { perSecond: 200, burst: 400 },
      secrets: [
        { id: "s1", createdAt: now.toISOString(), expiresAt: "2026-11-20T13:00:00.000Z", valid: true },
        { id: "s2", revoked: true, valid: false },
      ],
    },
    { id: "other", enabled: false, secrets: [{ id: "s1", expiresAt: null, valid: true }] },
  ]);
  const digests = readPartnersFile(path).partners.flatMap(({ secrets }) => secrets.map(({ sha256 }) => sha256));
  for (const digest of digests) expect(table + json).not.toContain(digest.slice(0, 8));
});

test.each([
  ["list without a file", ["list"], 1, /There is no partners file/],
  ["rotate without a file", ["rotate", "acme"], 1, /There is no partners file/],
  ["a bad id", ["add", "Acme!"], 1, /^The id of a partner has lower-case letters/],
  ["no id", ["add"], 2, /missing required argument 'id'/],
  ["an unknown option", ["add", "acme", "--nmae", "x"], 2, /Did you mean --name/],
  ["an unknown command", ["ad"], 2, /unknown command/],
  ["a bad kind", ["add", "acme", "--kinds", "create,cancel"], 2, /Give one or more of create, update, delete/],
  ["a bad rate", ["add", "acme", "--rate", "0"], 2, /number of at least 0.01/],
  ["a bad burst", ["add", "acme", "--burst", "1.5"], 2, /whole number of at least 1/],
  ["a bad quota", ["add", "acme", "--quota", "5 gallons"], 2, /number of bytes, such as 500MB/],
  ["an expiry in the past", ["add", "acme", "--expires", "2026-11-20"], 2, /not in the future/],
  ["an overlap without a unit", ["rotate", "acme", "--overlap", "30"], 2, /a number and a unit/],
])("%s fails with a sentence, and creates no file", async (_, args, exitCode, sentence) => {
  const ran = await partners(...args);
  expect(ran).toMatchObject({ exitCode, stdout: "" });
  expect(ran.stderr).toMatch(sentence);
  expect(ran.stderr).not.toMatch(/^ {4}at /m);
  expect(() => readPartnersFile(path)).toThrow(/no partners file/);
});

test("an invalid file is reported, and not changed", async () => {
  await writeFile(path, "{}");
  expect(await partners("add", "acme")).toMatchObject({ exitCode: 1, stdout: "" });
  expect(await readFile(path, "utf8")).toBe("{}");
});
