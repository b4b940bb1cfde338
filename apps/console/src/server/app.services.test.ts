import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { expect, test } from "vitest";
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

test("who has logged out is a stranger", async () => {
  const browser = await desk.logIn();
  expect(await browser.post("/logout")).toMatchObject({ status: 303, location: "/login" });
  expect((await browser.get("/")).status).toBe(302);
});

test("a post is taken also from a browser that names its origin only", async () => {
  const { status } = await desk.visit().post("/logout", {}, { Origin: desk.url });
  expect(status).toBe(303);
});

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
