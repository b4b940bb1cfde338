import { parseEnvironment } from "@booking-events/runtime";
import { describe, expect, test } from "vitest";
import { createLogins, loginVariables, toKey } from "./create-logins.ts";

const password = { CONSOLE_PASSWORD: "a-password-of-these-tests" };
const oidc = {
  CONSOLE_URL: "https://console.example.com",
  CONSOLE_OIDC_ISSUER: "https://login.example.com",
  CONSOLE_OIDC_CLIENT_ID: "console",
  CONSOLE_OIDC_CLIENT_SECRET: "secret",
  CONSOLE_VIEWERS: "group:support",
};
const header = {
  CONSOLE_IDENTITY_HEADER: "X-Forwarded-Email",
  CONSOLE_TRUSTED_PROXIES: "10.0.3.7, 2001:db8::/32",
  CONSOLE_OPERATORS: "ada@example.com",
};
const read = (environment: Record<string, string>) => parseEnvironment(loginVariables, environment);
const create = (environment: Record<string, string>) => createLogins(read(environment), () => new Date());

test.each<[string, Record<string, string>]>([
  ["a password", password],
  ["OpenID Connect", oidc],
  ["a header", header],
  ["all of them", { ...password, ...oidc, ...header }],
])("by %s one can log in", (_, environment) => {
  expect(() => create(environment)).not.toThrow();
});

test.each<[string, Record<string, string>, string]>([
  ["there is no login", {}, "needs a login: set CONSOLE_PASSWORD"],
  ["an empty password is none", { CONSOLE_PASSWORD: "" }, "needs a login"],
  ["a password is short", { CONSOLE_PASSWORD: "short" }, "CONSOLE_PASSWORD must have at least 16 characters"],
  ["a client's secret is missing", { ...oidc, CONSOLE_OIDC_CLIENT_SECRET: "" }, "set all of them"],
  ["its own address is missing", { ...oidc, CONSOLE_URL: "" }, "set all of them"],
  ["nobody is listed", { ...oidc, CONSOLE_VIEWERS: " , " }, "Nobody could log in"],
  ["no proxy is listed", { ...header, CONSOLE_TRUSTED_PROXIES: "" }, "set the addresses of your proxies"],
  ["a proxy has a name", { ...header, CONSOLE_TRUSTED_PROXIES: "proxy" }, "must be addresses"],
  ["a range is too long", { ...header, CONSOLE_TRUSTED_PROXIES: "10.0.0.0/33" }, "must be addresses"],
  ["a range is empty", { ...header, CONSOLE_TRUSTED_PROXIES: "10.0.0.0/" }, "must be addresses"],
  ["a header is none", { ...header, CONSOLE_IDENTITY_HEADER: "a b" }, "must be the name of a header"],
  ["the provider is reached over http", { ...oidc, CONSOLE_OIDC_ISSUER: "http://login.example.com" }, "https://"],
  ["it is reached over http itself", { ...password, CONSOLE_URL: "http://console.example.com" }, "https://"],
  ["a host begins as localhost", { ...password, CONSOLE_URL: "http://localhost.example.com" }, "https://"],
  ["a name before the host is localhost", { ...password, CONSOLE_URL: "http://localhost:1@example.com" }, "https://"],
  ["it has a user", { ...password, CONSOLE_URL: "https://ada@example.com" }, "without a user"],
  ["it has a path", { ...password, CONSOLE_URL: "https://example.com/console" }, "without a path"],
])("it does not start if %s", (_, environment, message) => {
  expect(() => create(environment)).toThrow(message);
});

describe("the key of logins", () => {
  const key = { CONSOLE_SESSION_KEY: "a-key-of-these-tests-of-32-characters" };
  const keyOf = (environment: Record<string, string>) => toKey(read(environment)).toString("hex");

  test("is the same for each process with the same logins, and another one at each start without a key", () => {
    expect(keyOf({ ...key, ...oidc })).toBe(keyOf({ ...oidc, ...key, LOG_LEVEL: "debug" }));
    expect(keyOf(oidc)).not.toBe(keyOf(oidc));
  });

  test.each<Record<string, string>>([
    { CONSOLE_SESSION_KEY: "another-key-of-tests-of-32-characters" },
    { CONSOLE_PASSWORD: "another-password-of-these-tests" },
    { CONSOLE_VIEWERS: "" },
    { CONSOLE_OPERATORS: "group:on-call" },
    { CONSOLE_OIDC_ISSUER: "https://another.example.com" },
    { CONSOLE_TRUSTED_PROXIES: "10.0.3.8" },
  ])("changes with %j", (changed) => {
    const before = { ...key, ...password, ...oidc, ...header };
    expect(keyOf({ ...before, ...changed })).not.toBe(keyOf(before));
  });
});
