import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { adminPort, parseEnvironment, redisVariables, variables } from "./environment.ts";
import { toRedisServers } from "./redis-servers.ts";
import { StartError } from "./start-error.ts";

const required = { REDIS_URL: "redis://127.0.0.1:6379", DATABASE_URL: "postgres://127.0.0.1/x" };
const all = { ...variables, ADMIN_PORT: adminPort(9101) };

test("a variable that is not set has its documented default", () => {
  expect(parseEnvironment(all, required)).toEqual({
    ...required,
    REDIS_USERNAME: "",
    REDIS_PASSWORD: "",
    REDIS_TLS: false,
    REDIS_REPLICAS_TO_CONFIRM: 0,
    REDIS_SENTINEL_USERNAME: "",
    REDIS_SENTINEL_PASSWORD: "",
    DATABASE_PASSWORD: "",
    DATABASE_STANDBYS_TO_CONFIRM: 0,
    PORT: 8080,
    HOST: "0.0.0.0",
    DATABASE_SCHEMA: "public",
    ADMIN_HOST: "127.0.0.1",
    ADMIN_PORT: 9101,
    PARTNERS_FILE: "./partners.json",
    TRUSTED_PROXY_HOPS: 0,
    MAX_CONNECTIONS: 10_000,
    KEEP_ALIVE_TIMEOUT_MS: 650_000,
    BODY_LIMIT_BYTES: 65_536,
    MAX_BACKLOG: 1_000_000,
    REDIS_MEMORY_HIGH_WATER: 0.7,
    CONCURRENCY: 3_000,
    BATCH_SIZE: 800,
    DUPLICATE_WINDOW_HOURS: 72,
    RETENTION_DAYS: 400,
    DELETED_RETENTION_DAYS: 30,
    DEAD_LETTER_RETENTION_DAYS: 90,
    QUEUE_PREFIX: "{booking-events}",
    QUEUE_SHARDS: 1,
    WEBHOOKS_ALLOW_PRIVATE: false,
    CONSOLE_TRUSTED_PROXIES: [],
    CONSOLE_VIEWERS: [],
    CONSOLE_OPERATORS: [],
    CONSOLE_PRIVACY: [],
    OPERATOR_REQUIRED: false,
    LOOKUP_VALUES: true,
    LOG_LEVEL: "info",
    SHUTDOWN_DELAY_MS: 0,
    SHUTDOWN_TIMEOUT_MS: 15_000,
  });
});

test("an empty variable counts as absent", () => {
  expect(parseEnvironment({ PORT: variables.PORT }, { PORT: "" })).toEqual({ PORT: 8080 });
});

/** Returns why the environment is refused. */
function messageFor(environment: Record<string, string>): string {
  try {
    parseEnvironment(all, environment);
  } catch (error) {
    expect(error).toBeInstanceOf(StartError);
    return (error as Error).message;
  }
  throw new Error("It was to be refused.");
}

describe("a password in a variable of its own", () => {
  test("needs no encoding", () => {
    const password = "a/b#c?d%25 e%zz:@[é'\\";
    const { REDIS_URL, DATABASE_URL } = parseEnvironment(all, {
      REDIS_URL: "rediss://ingest@redis:6379/0",
      REDIS_PASSWORD: password,
      DATABASE_URL: "postgres://worker@db:5432/bookings?sslmode=verify-full",
      DATABASE_PASSWORD: password,
    });
    expect(decodeURIComponent(new URL(REDIS_URL ?? "").password)).toBe(password);
    expect(decodeURIComponent(new URL(DATABASE_URL).password)).toBe(password);
    expect(new URL(DATABASE_URL)).toMatchObject({
      username: "worker",
      host: "db:5432",
      search: "?sslmode=verify-full",
    });
  });

  test("reaches a URL with several hosts", () => {
    const DATABASE_URL = "postgres://worker@db-1:5432,db-2,[::1]:5433/bookings?sslmode=verify-full";
    const settings = parseEnvironment(all, { ...required, DATABASE_URL, DATABASE_PASSWORD: "a,b@c/d" });
    expect(settings.DATABASE_URL).toBe(
      "postgres://worker:a%2Cb%40c%2Fd@db-1:5432,db-2,[::1]:5433/bookings?sslmode=verify-full",
    );
  });

  test("reaches a process that reads only the URL", () => {
    const { REDIS_URL } = parseEnvironment(
      { REDIS_URL: variables.REDIS_URL },
      { REDIS_URL: "redis://redis:6379", REDIS_PASSWORD: "p", DATABASE_PASSWORD: "not read" },
    );
    expect(REDIS_URL).toBe("redis://:p@redis:6379");
  });

  test("does not replace one in the URL", () => {
    const REDIS_URL = "redis://:one@redis:6379";
    expect(parseEnvironment(all, { ...required, REDIS_URL, REDIS_PASSWORD: "two" })).toMatchObject({ REDIS_URL });
  });

  test("is refused for a local socket, whose URL has no place for it", () => {
    const message = messageFor({ ...required, DATABASE_URL: "postgres:///x?host=/run", DATABASE_PASSWORD: "canary" });
    expect(message).toContain("DATABASE_PASSWORD needs a host in DATABASE_URL");
    expect(message).not.toContain("canary");
  });
});

describe("a secret in a file", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "secrets-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  function write(content: string): string {
    const file = path.join(folder, randomUUID());
    writeFileSync(file, content);
    return file;
  }

  test("is read without the line break at its end", () => {
    const settings = parseEnvironment(all, {
      REDIS_URL_FILE: write("redis://redis:6379\n"),
      REDIS_PASSWORD_FILE: write("a/b\r\n"),
      DATABASE_URL: "postgres://worker@db/x",
      DATABASE_PASSWORD_FILE: write("p#1"),
      DIGEST_KEY_FILE: write("k".repeat(32)),
    });
    expect(settings).toMatchObject({
      REDIS_URL: "redis://:a%2Fb@redis:6379",
      DATABASE_URL: "postgres://worker:p%231@db/x",
      DIGEST_KEY: "k".repeat(32),
    });
  });

  test("of a variable that the process does not read stays closed", () => {
    const environment = { PORT: "1", DATABASE_PASSWORD_FILE: path.join(folder, "none") };
    expect(parseEnvironment({ PORT: variables.PORT }, environment)).toEqual({ PORT: 1 });
  });

  test.each([
    ["does not exist", { DATABASE_URL_FILE: path.join(folder, "none") }, "cannot be read (ENOENT)"],
    ["is a folder", { DATABASE_URL_FILE: folder }, "cannot be read (EISDIR)"],
    ["is empty", { DATABASE_URL_FILE: write("\n") }, "names an empty file"],
    ["is set twice", { ...required, DATABASE_URL_FILE: write("x") }, "DATABASE_URL and DATABASE_URL_FILE are both set"],
  ])("that %s is refused with one sentence", (_, environment, sentence) => {
    const message = messageFor({ REDIS_URL: required.REDIS_URL, ...environment });
    expect(message).toContain(sentence);
    expect(message.split("\n")).toHaveLength(2);
  });

  test("is judged by the variable's rule, and not shown", () => {
    const message = messageFor({ ...required, DIGEST_KEY_FILE: write("canary") });
    expect(message).toContain("DIGEST_KEY must have at least 32 characters");
    expect(message).not.toContain("canary");
  });
});

describe("where Redis is", () => {
  const database = { DATABASE_URL: required.DATABASE_URL };
  const read = (environment: Record<string, string>) => toRedisServers(parseEnvironment(redisVariables, environment));

  test("is one URL", () => {
    expect(read({ REDIS_URL: "redis://redis:6379", REDIS_PASSWORD: "p" })).toBe("redis://:p@redis:6379");
  });

  test("is some nodes of a cluster", () => {
    const access = { REDIS_USERNAME: "ingest", REDIS_PASSWORD: "a/b#c", REDIS_TLS: "true" };
    expect(read({ REDIS_CLUSTER: "redis-1:6379, 10.0.0.2:6380,[fd00::1]:6379", ...access })).toEqual({
      cluster: [
        { host: "redis-1", port: 6379 },
        { host: "10.0.0.2", port: 6380 },
        { host: "fd00::1", port: 6379 },
      ],
      username: "ingest",
      password: "a/b#c",
      isEncrypted: true,
    });
  });

  test("is known to sentinels", () => {
    const sentinels = { REDIS_SENTINELS: "s1:26379,s2:26379", REDIS_SENTINEL_NAME: "bookings" };
    expect(read({ ...sentinels, REDIS_PASSWORD: "one", REDIS_SENTINEL_PASSWORD: "two" })).toEqual({
      sentinels: [
        { host: "s1", port: 26379 },
        { host: "s2", port: 26379 },
      ],
      name: "bookings",
      username: "",
      password: "one",
      isEncrypted: false,
      sentinelUsername: "",
      sentinelPassword: "two",
    });
  });

  const [cluster, sentinels] = [{ REDIS_CLUSTER: "redis-1:6379" }, { REDIS_SENTINELS: "s1:26379" }];
  const url = { REDIS_URL: required.REDIS_URL };
  test.each([
    [{}, "REDIS_URL is required"],
    [{ ...url, ...cluster }, "REDIS_CLUSTER contradicts REDIS_URL: set only one of"],
    [{ ...cluster, ...sentinels, REDIS_SENTINEL_NAME: "x" }, "REDIS_SENTINELS contradicts REDIS_CLUSTER"],
    [sentinels, "REDIS_SENTINEL_NAME is required"],
    [{ ...cluster, REDIS_SENTINEL_PASSWORD: "canary" }, "REDIS_SENTINEL_PASSWORD needs REDIS_SENTINELS"],
    [{ ...url, REDIS_TLS: "true" }, "REDIS_TLS has no effect: use rediss:// in REDIS_URL"],
    [{ ...url, REDIS_USERNAME: "canary" }, "REDIS_USERNAME has no effect"],
    [{ ...cluster, REDIS_TLS: "yes" }, "REDIS_TLS must be true or false"],
    [{ REDIS_CLUSTER: "redis-1" }, "REDIS_CLUSTER must be a list of hosts with ports"],
    [{ REDIS_CLUSTER: "redis-1:6379," }, "REDIS_CLUSTER must be a list"],
    [{ REDIS_CLUSTER: "redis://:canary@redis-1:6379" }, "REDIS_CLUSTER must be a list"],
    [{ REDIS_CLUSTER: "redis-1:66379" }, "REDIS_CLUSTER must be a list"],
  ])("is refused as %j with what to do", (environment, expected) => {
    const message = messageFor({ ...database, ...environment });
    expect(message).toContain(`\n  ${expected}`);
    expect(message).not.toContain("canary");
  });
});

describe("an invalid environment", () => {
  test.each([
    ["REDIS_URL", "redis://:pa/ss@redis:6379"],
    ["REDIS_URL", "redis://ingest:1/x@redis"],
    ["REDIS_URL", "redis://:50%@redis"],
    ["DATABASE_URL", "postgres://worker:p#x@db/bookings"],
    ["DATABASE_URL", "postgres://worker:p?x@db/bookings"],
    ["DATABASE_URL", "postgres://worker:1/x@db/bookings"],
  ])("with a password in %s that is not encoded, as in %s, is refused with what to do", (name, url) => {
    const message = messageFor({ ...required, [name]: url });
    expect(message).toMatch(
      new RegExp(`^ {2}${name} must be a valid URL. Percent-encode .* ${name.split("_")[0]}_PASS`, "m"),
    );
  });

  test("is refused with a list of every invalid variable and its rule", () => {
    const message = messageFor({ PORT: "99999", LOG_LEVEL: "loud", BODY_LIMIT_BYTES: "64k", QUEUE_PREFIX: "a:b" });
    for (const name of ["PORT", "LOG_LEVEL", "BODY_LIMIT_BYTES", "QUEUE_PREFIX", "REDIS_URL", "DATABASE_URL"]) {
      expect(message).toMatch(new RegExp(`^ {2}${name} \\S`, "m"));
    }
    expect(message).toContain("PORT must be at most 65535");
  });

  test("is refused without repeating a value, which may be a password", () => {
    expect(messageFor({ REDIS_URL: "http://user:canary@host" })).not.toContain("canary");
  });

  test.each([
    ["REDIS_URL", "redis is here"],
    ["REDIS_URL", "postgres://127.0.0.1"],
    ["DATABASE_URL", "mysql://127.0.0.1"],
    ["DATABASE_URL", "postgres://db-1:5432,db-2:x/bookings"],
    ["DATABASE_URL", "postgres://db-1,db-2/bookings?target_session_attrs=prefer-standby"],
    ["DATABASE_SCHEMA", 'a"b'],
    ["DATABASE_SCHEMA", "a.b"],
    ["DATABASE_SCHEMA", "pg_catalog"],
    ["DATABASE_SCHEMA", "information_schema"],
    ["DATABASE_SCHEMA", "1st"],
    ["DATABASE_SCHEMA", "a".repeat(50)],
    ["DATABASE_SCHEMA", "public_test_partners"],
    ["PORT", "-1"],
    ["PORT", "80.5"],
    ["CONCURRENCY", "0"],
    ["MAX_CONNECTIONS", "0"],
    ["KEEP_ALIVE_TIMEOUT_MS", "999"],
    ["MAX_BACKLOG", "0"],
    ["REDIS_MEMORY_HIGH_WATER", "70"],
    ["REDIS_MEMORY_HIGH_WATER", "0"],
    ["QUEUE_PREFIX", "no-braces"],
    ["QUEUE_SHARDS", "3"],
    ["QUEUE_SHARDS", "0"],
    ["QUEUE_SHARDS", "2048"],
  ])("%s may not be %s", (name, value) => {
    expect(messageFor({ ...required, [name]: value })).toMatch(new RegExp(`^ {2}${name} `, "m"));
  });
});

test.each(["secret\n", "secret\r\n"])(
  "a password that ends with a line break is refused by the name of its variable: %j",
  (value) => {
    const environment = { REDIS_URL: "redis://127.0.0.1", REDIS_PASSWORD: value };
    const parse = () => parseEnvironment(redisVariables, environment);
    expect(parse).toThrow("REDIS_PASSWORD ends with a line break: remove it, as by printf %s instead of echo");
    expect(parse).not.toThrow("secret");
  },
);

test("a line break is named at the end of any variable that is read, and of no other", () => {
  const { DATABASE_URL, DIGEST_KEY } = variables;
  const parse = (environment: Record<string, string>) => parseEnvironment({ DATABASE_URL, DIGEST_KEY }, environment);
  const environment = { DATABASE_URL: "postgres://db/x", DIGEST_KEY: `${"k".repeat(32)}\n`, OTHER: "x\n" };
  expect(() => parse(environment)).toThrow(
    /^Correct these environment variables:\n {2}DIGEST_KEY ends with a line break[^\n]*$/,
  );
  expect(() => parse({ ...environment, DIGEST_KEY: "k".repeat(32), DATABASE_PASSWORD: "x\n" })).toThrow(
    "DATABASE_PASSWORD ends",
  );
});
