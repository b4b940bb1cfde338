import { once } from "node:events";
import { request } from "node:http";
import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { expect, test } from "vitest";
import { password, useConsole } from "../testing/start-console.ts";

const database = useTestDatabase();
const server = useConsole(() => ({
  DATABASE_URL: database.url,
  REDIS_URL: redisUrl(),
  QUEUE_PREFIX: uniquePrefix(),
  CONSOLE_URL: "https://console.example.com",
}));

/** As a proxy passes it on, which speaks TLS. */
async function ask(path: string, headers: Record<string, string> = {}, form?: Record<string, string>) {
  const { hostname, port } = new URL(server.url);
  const method = form === undefined ? "GET" : "POST";
  const sent = { Host: "console.example.com", "Content-Type": "application/x-www-form-urlencoded", ...headers };
  const asked = request({ hostname, port, path, method, headers: sent });
  asked.end(form && new URLSearchParams(form).toString());
  const [answer] = await once(asked, "response");
  answer.resume();
  await once(answer, "end");
  return { status: answer.statusCode as number, cookies: (answer.headers["set-cookie"] ?? []) as string[] };
}

const here = { "Sec-Fetch-Site": "same-origin" };

test("over https, no other host can set the cookie, and none but this one gets it", async () => {
  const { status, cookies } = await ask("/login", here, { name: "Ada", password });
  expect(status).toBe(303);
  expect(cookies).toEqual([
    expect.stringMatching(/^__Host-console=[^;]+; path=\/; expires=[^;]+; samesite=lax; secure; httponly$/),
  ]);
  const cookie = cookies[0]?.split(";")[0] ?? "";
  expect((await ask("/", { Cookie: cookie })).status).toBe(200);
  // Another host of the domain could have set this one.
  expect((await ask("/", { Cookie: cookie.replace("__Host-", "") })).status).toBe(302);
});

test.each([
  ["console.example.com:443", 421],
  ["console.example.com.evil.example", 421],
  ["evil.example", 421],
  ["localhost", 421],
  ["127.0.0.1", 421],
  ["CONSOLE.example.com", 200],
])("as %s it answers %d", async (host, expected) => {
  expect((await ask("/login", { Host: host })).status).toBe(expected);
});

test("a page of its own may post where the browser says only its origin, and no page of another scheme or port", async () => {
  expect((await ask("/logout", { Origin: "https://console.example.com" }, {})).status).toBe(303);
  for (const origin of ["https://example.com", "http://console.example.com", "https://console.example.com:444"])
    expect([origin, (await ask("/logout", { Origin: origin }, {})).status]).toEqual([origin, 403]);
});
