import { once } from "node:events";
import { type ClientRequest, request } from "node:http";
import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { createLogger } from "@booking-events/runtime";
import Router from "@koa/router";
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { addPages } from "../pages.ts";
import { Tasks } from "../tasks/tasks.ts";
import { type Browser, type Page, password, useConsole } from "../testing/start-console.ts";
import { type PageState, Pages } from "./pages.ts";

/** Whatever is tried here does nothing, on every page that there is. */

const database = useTestDatabase();
const header = "X-Forwarded-Email";
const server = useConsole(() => ({
  DATABASE_URL: database.url,
  REDIS_URL: redisUrl(),
  QUEUE_PREFIX: uniquePrefix(),
  CONSOLE_IDENTITY_HEADER: header,
  CONSOLE_TRUSTED_PROXIES: "127.0.0.1",
  CONSOLE_VIEWERS: "viewer",
  CONSOLE_OPERATORS: "operator",
  CONSOLE_PRIVACY: "privacy",
}));
const here = { "Sec-Fetch-Site": "same-origin" };

const routes = listRoutes();
const [pages, actions] = [routes.get("GET") ?? [], routes.get("POST") ?? []];
/** What needs no login. */
const open = ["/login", "/logout"];

/** The paths of all routes by their method, with something in the place of each parameter. */
function listRoutes(): Map<string, string[]> {
  const router = new Router<PageState>();
  const operations = { environment: {}, now: () => new Date(), pool: () => ({}) as never };
  const logger = createLogger({ name: "console", level: "silent" });
  const stopping = new AbortController().signal;
  const tasks = new Tasks({ logger, stopping });
  addPages(new Pages(router, { operations, runbookUrl: undefined, stopping, tasks, logger }));
  const paths = new Map<string, string[]>();
  for (const { methods, path } of router.stack) {
    const filled = String(path).replaceAll(/[:*](\w+)/g, "x-$1");
    for (const method of methods) paths.set(method, [...(paths.get(method) ?? []), filled]);
  }
  return paths;
}

test("there are pages to attack", () => {
  expect(pages).toContain("/");
});

/** What was done by anybody but those who may. */
async function countWrites(): Promise<number> {
  const { rows } = await database.pool.query(
    "select count(*)::int as actions from operator_actions where operator not in ('operator', 'privacy')",
  );
  return rows[0].actions;
}

let before: number;
beforeEach(async () => {
  before = await countWrites();
});
afterEach(async () => {
  vi.useRealTimers();
  expect(await countWrites()).toBe(before);
});

describe("without a login", () => {
  test.each(pages)("GET %s leads to the login, and shows nothing", async (path) => {
    expectLogin(await server.visit().get(path));
  });

  test.each(actions)("POST %s is refused", async (path) => {
    expect((await server.visit().post(path)).status).toBe(401);
  });
});

function expectLogin({ status, location, html }: Page): void {
  expect([status, location?.replace(/\?.*/, "")]).toEqual([302, "/login"]);
  expect(html).not.toContain("<main");
}

describe("a cookie that we have not given, or no longer stand by,", () => {
  let cookie: string;
  let browser: Browser;
  beforeAll(async () => {
    browser = server.visit();
    const { headers } = await browser.post("/login", { name: "Ada", password });
    cookie = headers.getSetCookie()[0]?.split(";")[0] ?? "";
    expect(cookie).toMatch(/^console=/);
  });
  const ask = (value: string) => server.visit().get("/audit", { cookie: value });
  const edit = (change: (session: Record<string, unknown>) => object) => {
    const [, content = "", signature] = /^console=([^.]+)\.(.+)$/.exec(cookie) ?? [];
    const session = JSON.parse(Buffer.from(content, "base64url").toString());
    return `console=${Buffer.from(JSON.stringify(change(session))).toString("base64url")}.${signature}`;
  };

  test("counts for nothing if it was forged or tampered with", async () => {
    expect((await ask(cookie)).status).not.toBe(302);
    const flipped = [...cookie].map((character, at) =>
      at < "console=".length ? undefined : cookie.slice(0, at) + (character === "A" ? "B" : "A") + cookie.slice(at + 1),
    );
    const forged = [
      ...flipped.filter((text) => text !== undefined),
      edit((session) => ({ ...session, name: "Eve" })),
      edit((session) => ({ ...session, endsAtMs: 9e15 })),
      edit(() => []),
      cookie.replace(/\..*$/, ""),
      cookie.replace(/\..*$/, "."),
      `${cookie}A`,
      `${cookie}=`,
      `${cookie}.${cookie}`,
      "console=",
      "console=.",
      "console=e30.",
      "console=null",
      `__Host-${cookie}`,
    ];
    for (const value of forged) {
      const answer = await ask(value);
      expect([value, answer.status, answer.location]).toEqual([value, 302, "/login?next=%2Faudit"]);
    }
  });

  test("counts for nothing if it was given for another purpose", async () => {
    const { headers } = await browser.post("/login", { name: "Ada", password: "wrong-password-0000" });
    expect(headers.getSetCookie()).toEqual([]);
    const renamed = cookie.replace("console=", "console-notices=");
    expectLogin(await ask(renamed));
    // And a login is no notice.
    expect((await server.visit().get("/audit", { cookie: `${cookie}; ${renamed}` })).html).not.toContain(
      'class="notice',
    );
  });

  test("counts for nothing after eight hours", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 8 * 3_600_000 - 60_000 });
    expect((await ask(cookie)).status).not.toBe(302);
    vi.setSystemTime(Date.now() + 60_000);
    expectLogin(await ask(cookie));
  });

  test("counts for nothing after its visitor has logged out, also for whoever has copied it", async () => {
    const left = await server.logIn("Bob");
    const copied = (await left.get("/audit")).status;
    expect(copied).not.toBe(302);
    const other = server.visit();
    const { headers } = await other.post("/login", { name: "Bob", password });
    const copy = headers.getSetCookie()[0]?.split(";")[0] ?? "";
    expect((await ask(copy)).status).not.toBe(302);
    expect((await other.post("/logout")).status).toBe(303);
    expectLogin(await ask(copy));
    // Another login of the same visitor goes on.
    expect((await left.get("/audit")).status).not.toBe(302);
  });
});

describe("who may not do it", () => {
  const as = (name: string) => ({ ...here, [header]: name });

  test.each(actions)("POST %s is refused to a viewer, and to an operator or to somebody for privacy", async (path) => {
    const statuses = await Promise.all(
      ["viewer", "operator", "privacy"].map(async (name) => (await server.visit().post(path, {}, as(name))).status),
    );
    const [viewer, ...others] = statuses;
    expect(viewer).toBe(403);
    expect(others.filter((status) => status === 403)).toHaveLength(1);
  });

  test.each([...pages, ...actions])("%s is refused to whoever has no role", async (path) => {
    for (const name of ["nobody", "group:operator", "viewer,operator", "", "\u202eoperator"].map(encodeHeader)) {
      expect([302, 403]).toContain((await server.visit().get(path, { [header]: name })).status);
      expect([401, 403]).toContain((await server.visit().post(path, {}, as(name))).status);
    }
  });

  test("nobody is believed a role that a form or another header names", async () => {
    const headers = { ...as("viewer"), "X-Roles": "operator", "X-Forwarded-Groups": "operator", Role: "operator" };
    for (const path of actions) {
      const form = { role: "operator", roles: "operator", name: "operator" };
      expect((await server.visit().post(path, form, headers)).status).toBe(403);
    }
  });
});

/** A header has bytes. */
const encodeHeader = (text: string) => Buffer.from(text).toString("latin1");

describe("what another site makes a browser send", () => {
  const other = "https://evil.example";
  const foreign: [string, Record<string, string>][] = [
    ["from another site", { "Sec-Fetch-Site": "cross-site" }],
    ["from another host of the same site", { "Sec-Fetch-Site": "same-site" }],
    ["by the visitor, who typed it", { "Sec-Fetch-Site": "none" }],
    ["from another site that says it is ours", { "Sec-Fetch-Site": "cross-site, same-origin" }],
    ["with nothing that says from where", {}],
    ["with the origin of another site", { Origin: other }],
    ["with an origin that is hidden", { Origin: "null" }],
    ["with an origin that begins as ours", { Origin: "http://127.0.0.1:1" }],
    ["with an origin that is none", { Origin: "127.0.0.1" }],
    ["with our page as its referrer", { Referer: "http://127.0.0.1/" }],
  ];

  test.each(foreign)("%s is refused, for each action, the login and the logout", async (_, headers) => {
    const browser = await server.logIn();
    for (const path of [...actions, ...open]) {
      const { status, headers: answered } = await browser.post(path, { name: "Eve", password }, headers);
      expect([path, status, answered.getSetCookie()]).toEqual([path, 403, []]);
    }
  });

  test.each(actions)("POST %s takes nothing but a form of ours", async (path) => {
    const browser = await server.logIn();
    for (const type of ["text/plain", "application/json", "multipart/form-data; boundary=x"])
      expect((await browser.post(path, {}, { ...here, "Content-Type": type })).status).toBe(415);
  });

  test("no page can be changed by a GET", async () => {
    const browser = await server.logIn();
    const onlyPosted = actions.filter((path) => !pages.includes(path));
    for (const path of onlyPosted) expect([404, 405]).toContain((await browser.get(path)).status);
    for (const method of ["PUT", "DELETE", "PATCH"])
      for (const path of actions) {
        const answer = await fetch(server.url + path, { method, headers: here, redirect: "manual" });
        expect([401, 404, 405]).toContain(answer.status);
      }
  });
});

describe("under another name", () => {
  test.each([
    "evil.example",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "evil.example:80",
    "127.0.0.1@evil.example",
    "LOCALHOST.evil.example",
    "[::1].evil.example",
  ])("as %j it answers nothing", async (host) => {
    for (const path of ["/", "/login", ...pages]) {
      const { status, headers, body } = await askAs(host, path);
      expect([host, status]).toEqual([host, 421]);
      expect(headers["location"]).toBeUndefined();
      expect(body).not.toContain("evil.example");
    }
  });

  test("no header of a proxy gives it another one", async () => {
    const forwarded = { "X-Forwarded-Host": "evil.example", Forwarded: "host=evil.example", "X-Host": "evil.example" };
    const answer = await askAs("localhost", "/", forwarded);
    expect([answer.status, answer.headers["location"]]).toEqual([302, "/login"]);
    expect((await askAs("evil.example", "/", { "X-Forwarded-Host": "localhost" })).status).toBe(421);
  });
});

/** `fetch` does not let its caller choose the name. */
async function askAs(host: string, path: string, headers: Record<string, string> = {}) {
  const { hostname, port } = new URL(server.url);
  const asked: ClientRequest = request({ hostname, port, path, headers: { ...headers, Host: host } }).end();
  const [answer] = await once(asked, "response");
  let body = "";
  for await (const chunk of answer.setEncoding("utf8")) body += chunk;
  return { status: answer.statusCode as number, headers: answer.headers as Record<string, unknown>, body };
}

describe("after a login", () => {
  const elsewhere = [
    "https://evil.example/",
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\n/evil.example",
    "\t//evil.example",
    " //evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "evil.example",
    "/audit\r\nSet-Cookie: console=x",
    "/audit\u0000",
    "/..//evil.example",
    "/%2f%2fevil.example",
    "/%0d%0aSet-Cookie:x",
  ];

  test.each(elsewhere)("nobody is led to %j", async (next) => {
    const asked = await server.visit().get(`/login?next=${encodeURIComponent(next)}`);
    expect(asked.status).toBe(200);
    const { status, location, headers } = await server.visit().post("/login", { name: "Ada", password, next });
    expect(status).toBe(303);
    expect(new URL(location ?? "", server.url).origin).toBe(server.url);
    expect(headers.getSetCookie().map((line) => line.split("=")[0])).toEqual(["console"]);
  });

  test("a visitor is led to the page that was wanted", async () => {
    const { location } = await server.visit().get("/audit?by=Ada");
    const next = new URL(location ?? "", server.url).searchParams.get("next") ?? "";
    expect((await server.visit().post("/login", { name: "Ada", password, next })).location).toBe("/audit?by=Ada");
  });
});

test("guesses of the password are limited, from one address and by whatever name, and then the right one waits too", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
  const guess = async (name: string, tried: string) =>
    (await server.visit().post("/login", { name, password: tried })).status;
  const statuses = [];
  for (let at = 0; at < 12; at += 1) statuses.push(await guess(`name ${at}`, `guess ${at}`));
  expect(statuses).toEqual([...Array(10).fill(403), 429, 429]);
  expect(await guess("Ada", password)).toBe(429);
  vi.setSystemTime(Date.now() + 60_000);
  expect(await guess("Ada", password)).toBe(303);
});

describe("whatever is asked", () => {
  const strange = [
    "/%",
    "/%ff",
    "/%00",
    "/..",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/assets/..%2f..%2fpackage.json",
    "//",
    "/login/",
  ];

  test.each([...pages, ...strange, "/login", "/nothing", "/assets/nothing.js"])(
    "GET %s forbids what pages do not need",
    async (path) => {
      for (const browser of [server.visit(), await server.logIn()]) {
        const { headers, status } = await browser.get(path);
        expect(status).toBeLessThan(500);
        expect(Object.fromEntries(headers)).toMatchObject({
          "content-security-policy": expect.stringMatching(/^default-src 'none'; (?!.*unsafe)/),
          "x-content-type-options": "nosniff",
          "referrer-policy": "no-referrer",
          "cache-control": "no-store",
          "cross-origin-opener-policy": "same-origin",
        });
        expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
        for (const line of headers.getSetCookie()) expect(line.toLowerCase()).toMatch(/; httponly/);
      }
    },
  );

  test.each(pages)("GET %s shows hostile text as text", async (path) => {
    const hostile = `"><script>alert(1)</script>' onload=x \u202e${"y".repeat(500)}`;
    const browser = await server.logIn();
    const query = new URL(path, server.url).pathname;
    const words = ["q", "partner", "by", "since", "until", "at", "after", "before", "page", "kind", "outcome", "state"];
    const asked = `${query}?${new URLSearchParams(words.map((word) => [word, hostile]))}`;
    for (const place of [asked, path.replaceAll(/x-\w+/g, () => encodeURIComponent(hostile))]) {
      const { html, status } = await browser.get(place);
      expect(status).toBeLessThan(500);
      expect(html).not.toContain("<script>alert");
      expect(html).not.toMatch(/<[^>]*\sonload=x/);
    }
  });
});

test("a name that is text of a page stays text, and one that can't be recorded is refused", async () => {
  const browser = await server.logIn("<script>alert(1)</script>");
  const { html } = await browser.get("/");
  expect(html).toContain("&lt;script>alert(1)");
  expect(html).not.toContain("<script>alert");
  for (const name of ["\u202eadA", "a\nb", "", " ", "a\u0000", "x".repeat(300)])
    expect((await server.visit().post("/login", { name, password })).status).toBe(422);
});
