import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { afterEach, expect, test, vi } from "vitest";
import { chooseAppPorts, freePort, isPortFree } from "./ports.ts";

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

test("a port is not free if something listens on any of its addresses", async () => {
  const port = await freePort();
  expect(await isPortFree(port, "0.0.0.0")).toBe(true);
  await listen(port, "127.0.0.1");
  expect(await isPortFree(port, "0.0.0.0")).toBe(false);
  expect(await isPortFree(port, "127.0.0.1")).toBe(false);
});

test("ports that follow each other are handed out to no one else", async () => {
  const random = vi.spyOn(Math, "random");
  const port = await freePort({ following: 4 });
  const proposed = random.mock.results.at(-1)?.value as number;
  for (const next of [0, 1, 2, 3, 4]) expect(await isPortFree(port + next)).toBe(true);

  random.mockReturnValueOnce(proposed);
  const again = await freePort({ following: 4 });
  expect(Math.abs(again - port)).toBeGreaterThan(4);

  for (const others of [1, 2, 3, 4]) {
    vi.stubEnv("VITEST_POOL_ID", String(Number(process.env["VITEST_POOL_ID"]) + others));
    vi.resetModules();
    const other = await import("./ports.ts");
    vi.unstubAllEnvs();
    random.mockReturnValueOnce(proposed);
    expect(Math.abs((await other.freePort({ following: 4 })) - port)).toBeGreaterThan(4);
  }
});

test("a default port that is taken gives way to a free one near it", async () => {
  const taken = (await chooseAppPorts({})).ingest;
  await listen(taken, "127.0.0.1");
  const { ingest } = await chooseAppPorts({});
  expect(ingest).not.toBe(taken);
  expect(await isPortFree(ingest)).toBe(true);
});

test("no two apps have the same port", async () => {
  const { ingestAdmin, lookup } = await chooseAppPorts({});
  for (const environment of [{ PORT: String(ingestAdmin) }, { PORT: String(lookup), ADMIN_PORT: String(lookup + 1) }]) {
    const { host: _, ...ports } = await chooseAppPorts(environment);
    expect(new Set(Object.values(ports))).toHaveProperty("size", 9);
  }
});

test("a port that the user asked for and that is taken is an error that names it, and what to do", async () => {
  const port = await freePort();
  await listen(port, "127.0.0.1");
  await expect(chooseAppPorts({ PORT: String(port) })).rejects.toMatchObject({
    message: expect.stringContaining(`Port ${port}, asked for by PORT, is in use`),
    advice: expect.stringContaining("PORT="),
  });
});

test.each([
  ["PORT", { PORT: "many" }, "PORT is"],
  ["HOST", { HOST: "203.0.113.1", PORT: "15000" }, "203.0.113.1"],
])("a %s that can't be used is an error that says so", async (_, environment, message) => {
  await expect(chooseAppPorts(environment)).rejects.toMatchObject({
    message: expect.stringContaining(message),
    advice: expect.any(String),
  });
});

async function listen(port: number, host: string): Promise<void> {
  const server = createServer().listen(port, host);
  servers.push(server);
  await once(server, "listening");
}
