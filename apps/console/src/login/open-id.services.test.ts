import { freePort, redisUrl, uniquePrefix } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { type Browser, type Page, useConsole } from "../testing/start-console.ts";
import { useLoginProvider } from "../testing/start-login-provider.ts";

const database = useTestDatabase();
let port: number;
beforeAll(async () => {
  port = await freePort();
});
const ownUrl = () => `http://127.0.0.1:${port}`;
const provider = useLoginProvider(() => `${ownUrl()}/login/callback`);
const server = useConsole(
  () => ({
    DATABASE_URL: database.url,
    REDIS_URL: redisUrl(),
    QUEUE_PREFIX: uniquePrefix(),
    CONSOLE_URL: ownUrl(),
    CONSOLE_OIDC_ISSUER: provider.issuer,
    CONSOLE_OIDC_CLIENT_ID: provider.clientId,
    CONSOLE_OIDC_CLIENT_SECRET: provider.clientSecret,
    CONSOLE_VIEWERS: "group:support",
    CONSOLE_OPERATORS: "ada@example.com,group:on-call",
    CONSOLE_PRIVACY: "group:privacy",
  }),
  { port: () => port },
);

afterEach(() => void vi.useRealTimers());

/** Goes to the provider, logs in there, and is sent back. */
async function logIn(browser: Browser, claims: typeof provider.claims, next = "/"): Promise<Page> {
  provider.claims = claims;
  return browser.get(toPath(await provider.visit(await leave(browser, next))));
}

async function leave(browser: Browser, next = "/"): Promise<string> {
  const { status, location } = await browser.get(`/login/openid?next=${encodeURIComponent(next)}`);
  expect(status).toBe(302);
  return location ?? "";
}

function toPath(url: string): string {
  const { origin, pathname, search } = new URL(url);
  expect(origin).toBe(server.url);
  return pathname + search;
}

const ada = { sub: "u-1", email: "ada@example.com", email_verified: true };

test("an operator logs in with the provider, and is led to the page that was wanted, with the roles of the lists", async () => {
  const browser = server.visit();
  const asked = await browser.get("/?x=1");
  const page = await browser.get(asked.location ?? "");
  const [, link = ""] = /href="(\/login\/openid[^"]*)"/.exec(page.html) ?? [];
  expect(page.html).not.toContain("password");
  const { location } = await browser.get(link);
  const wanted = new URL(location ?? "").searchParams;
  expect(Object.fromEntries(wanted)).toMatchObject({
    response_type: "code",
    code_challenge_method: "S256",
    code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    state: expect.stringMatching(/^[\w-]{43}$/),
    nonce: expect.stringMatching(/^[\w-]{43}$/),
  });
  provider.claims = ada;
  const back = await browser.get(toPath(await provider.visit(location ?? "")));
  expect([back.status, back.location]).toEqual([303, "/?x=1"]);
  const overview = await browser.get("/");
  expect(overview.status).toBe(200);
  expect(overview.html).toContain("ada@example.com");
  expect(overview.html).toContain("viewer, operator");
});

test.each([
  ["a group", { sub: "u-2", groups: ["staff", "privacy"] }, "u-2", "viewer, privacy"],
  ["one group that is no list", { sub: "u-2", groups: "support" }, "u-2", "viewer"],
])("a visitor has roles by %s", async (_, claims, name, roles) => {
  const browser = server.visit();
  expect((await logIn(browser, claims)).status).toBe(303);
  const { html } = await browser.get("/");
  expect(html).toContain(`<bdi>${name}</bdi>`);
  expect(html).toContain(`<small>${roles}</small>`);
});

test.each([
  ["is in no list", { sub: "u-3", email: "bob@example.com", email_verified: true }],
  ["has another's address, which nobody has verified", { ...ada, sub: "u-3", email_verified: false }],
  ["has another's address, of which nobody says whether it is verified", { sub: "u-3", email: ada.email }],
  ["chooses another's address as a name", { sub: "u-3", preferred_username: ada.email, name: ada.email }],
  ["has a similar address", { ...ada, email: "Ada@example.com" }],
  ["is called as a group", { sub: "group:on-call" }],
  ["has groups that are none", { sub: "u-3", groups: [{ name: "on-call" }, ["on-call"], null] }],
  ["has a name that turns text around", { ...ada, email: "\u202emoc.elpmaxe@ada" }],
  ["has a very long name", { ...ada, email: `${"a".repeat(5_000)}@example.com`, groups: ["on-call"] }],
  ["has a name with markup in no list", { ...ada, email: "<script>alert(1)</script>@example.com" }],
])("whoever %s is refused", async (_, claims) => {
  const browser = server.visit();
  const { status, headers, html } = await logIn(browser, claims);
  expect(status).toBe(403);
  expect(headers.getSetCookie().join()).not.toMatch(/console=[^;]/);
  expect(html).not.toContain("<script>alert");
  expect((await browser.get("/")).location).toBe("/login");
});

test("a name with markup is shown as text", async () => {
  const browser = server.visit();
  await logIn(browser, { ...ada, email: `"><script>alert(1)</script>@example.com`, groups: ["support"] });
  const { html } = await browser.get("/");
  expect(html).toContain("&lt;script>alert(1)");
  expect(html).not.toContain("<script>alert");
});

test("an answer of the provider counts once, in the browser that asked for it, for ten minutes", async () => {
  provider.claims = ada;
  const refused = async (browser: Browser, path: string) => {
    const { status, headers } = await browser.get(path);
    expect([status, headers.getSetCookie().filter((line) => /^console=[^;]/.test(line))]).toEqual([status, []]);
    return status;
  };
  const browser = server.visit();
  const path = toPath(await provider.visit(await leave(browser)));
  expect(await refused(server.visit(), path)).toBe(400);
  // Another visitor, who has begun to log in too: this is how one would be logged in as somebody else.
  const other = server.visit();
  await leave(other);
  expect(await refused(other, path)).toBe(403);
  expect((await browser.get(path)).status).toBe(303);
  expect(await refused(browser, path)).toBe(400);

  const slow = server.visit();
  const late = toPath(await provider.visit(await leave(slow)));
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 10 * 60_000 });
  expect(await refused(slow, late)).toBe(400);
});

test.each<[string, (query: URLSearchParams) => void]>([
  ["a code that the provider has not given", (query) => query.set("code", "another")],
  ["no code", (query) => query.delete("code")],
  ["another state", (query) => query.set("state", "another")],
  ["no state", (query) => query.delete("state")],
  ["two states", (query) => query.append("state", "another")],
  ["another issuer", (query) => query.set("iss", "https://evil.example")],
  ["an error", (query) => query.set("error", "access_denied")],
  [
    "an error that is markup",
    (query) => {
      query.set("error", "<script>alert(1)</script>");
      query.set("error_description", "<script>alert(1)</script>\r\nSet-Cookie: console=x");
    },
  ],
])("who comes back with %s is not logged in", async (_, change) => {
  provider.claims = ada;
  const browser = server.visit();
  const url = new URL(await provider.visit(await leave(browser)));
  change(url.searchParams);
  const { status, html, headers } = await browser.get(toPath(url.href));
  expect(status).toBe(403);
  expect(html).not.toContain("<script>alert");
  expect(headers.getSetCookie().join()).not.toMatch(/console=[^;]/);
  expect((await browser.get("/")).location).toBe("/login");
});

test.each(["//evil.example", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"])(
  "nobody is led to %j by a login",
  async (next) => {
    expect((await logIn(server.visit(), ada, next)).location).toBe("/");
  },
);

test("there is no login by password beside it, unless one is set", async () => {
  expect((await server.visit().post("/login", { name: "Ada", password: "" })).status).toBe(404);
});
