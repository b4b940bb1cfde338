import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { describe, expect, test } from "vitest";
import { seal } from "../login/seal.ts";
import { password, useConsole } from "../testing/start-console.ts";

const { url } = useTestDatabase();
const desk = useConsole(() => ({ DATABASE_URL: url, REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix() }));

test("a page needs a login, and is shown after it", async () => {
  const browser = desk.visit();
  expect(await browser.get("/search?q=TRIP-1")).toMatchObject({
    status: 302,
    location: "/login?next=%2Fsearch%3Fq%3DTRIP-1",
  });
  expect(await browser.post("/login", { name: "Ada", password, next: "/audit?by=Ada" })).toMatchObject({
    ...{ status: 303, location: "/audit?by=Ada" },
  });
  expect(await browser.get("/")).toMatchObject({ status: 200, html: expect.stringContaining("<h1>Overview</h1>") });
});

test.each(["https://elsewhere.example/", "//elsewhere.example", "/\\elsewhere.example", "/\t/elsewhere.example", ""])(
  "a login does not lead to %j",
  async (next) => {
    expect((await desk.visit().post("/login", { name: "Ada", password, next })).location).toBe("/");
  },
);

test("who has logged out is a stranger", async () => {
  const browser = await desk.logIn();
  expect(await browser.post("/logout")).toMatchObject({ status: 303, location: "/login" });
  expect((await browser.get("/")).status).toBe(302);
});

describe("a cookie counts only if this process has signed it", () => {
  const session = { name: "Eve", roles: ["operator"], endsAtMs: Date.now() + 1_000_000 };
  const unsigned = Buffer.from(JSON.stringify(session)).toString("base64url");
  test.each([
    ["unsigned", unsigned],
    ["signed with nothing", `${unsigned}.`],
    ["signed by another key", seal(Buffer.from("another key"), "console", session)],
    ["something else", "%00.."],
  ])("%s", async (_, cookie) => {
    expect((await desk.visit().get("/", { cookie: `console=${cookie}` })).status).toBe(302);
  });
});

describe("a post is taken only from a page of the console", () => {
  test.each<Record<string, string>>([
    { "Sec-Fetch-Site": "cross-site" },
    { "Sec-Fetch-Site": "same-site" },
    { "Sec-Fetch-Site": "none" },
    { Origin: "https://elsewhere.example" },
    { Origin: "null" },
    {},
  ])("not with %j", async (headers) => {
    const { status, html } = await desk.visit().post("/login", { name: "Ada", password }, headers);
    expect(status).toBe(403);
    expect(html).toContain("not sent by a page of the console");
  });

  test("also from a browser that names its origin only", async () => {
    const { status } = await desk.visit().post("/logout", {}, { Origin: desk.url });
    expect(status).toBe(303);
  });
});

test.each(["/", "/login", "/nothing", "/%zz", "/assets/nothing.css"])(
  "every answer forbids the browser more than it needs: %s",
  async (path) => {
    const { headers } = await desk.visit().get(path);
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-security-policy":
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cache-control": "no-store",
    });
  },
);

test("assets may be kept, since their names change with them", async () => {
  const { html } = await desk.visit().get("/login");
  const paths = Array.from(html.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g), ([, path = ""]) => path);
  expect(paths).toHaveLength(4);
  for (const path of paths) {
    const { status, headers } = await desk.visit().get(path);
    expect([path, status, headers.get("cache-control")]).toEqual([path, 200, "public, max-age=31536000, immutable"]);
  }
});

test("what does not exist is said to be so", async () => {
  const browser = await desk.logIn();
  expect(await browser.get("/nothing")).toMatchObject({ status: 404, html: expect.stringContaining("No such page") });
});

test("a name is shown as it was typed", async () => {
  const browser = await desk.logIn('<script>alert("1")</script>');
  const { html } = await browser.get("/");
  expect(html).not.toContain("<script>alert");
  expect(html).toContain("&lt;script>");
});

// Last: the others log in from the same address.
test("a wrong password is refused, and so is the right one after ten wrong ones", async () => {
  const browser = desk.visit();
  for (let tries = 0; tries < 10; tries += 1)
    expect((await browser.post("/login", { name: "Ada", password: `wrong ${tries}` })).status).toBe(403);
  expect(await browser.post("/login", { name: "Ada", password })).toMatchObject({
    status: 429,
    html: expect.stringContaining("Too many wrong passwords."),
  });
});
