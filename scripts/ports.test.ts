import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { afterEach, expect, test } from "vitest";
import { choosePort, freePort, isPortFree } from "./ports.ts";

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

test("a port that something listens on is not free, on whichever address it listens", async () => {
  const port = await freePort();
  expect(await isPortFree(port, "0.0.0.0")).toBe(true);
  await listen(port, "127.0.0.1");
  expect(await isPortFree(port, "0.0.0.0")).toBe(false);
  expect(await isPortFree(port, "127.0.0.1")).toBe(false);
});

test("a default port that is taken gives way to a free neighbour", async () => {
  const port = await freePort();
  expect(await choosePort({ variable: "PORT", port, isDefault: true })).toBe(port);
  await listen(port, "127.0.0.1");
  const chosen = await choosePort({ variable: "PORT", port, isDefault: true });
  expect(chosen).not.toBe(port);
  expect(await isPortFree(chosen)).toBe(true);
});

test("a port that another part of the service is to have is not chosen", async () => {
  const port = await freePort();
  expect(await choosePort({ variable: "PORT", port, isDefault: true, avoid: [port] })).not.toBe(port);
});

test("a port that the user asked for and that is taken is an error that names it, and what to do", async () => {
  const port = await freePort();
  await listen(port, "127.0.0.1");
  await expect(choosePort({ variable: "PORT", port, isDefault: false })).rejects.toMatchObject({
    message: expect.stringContaining(`Port ${port}, asked for by PORT, is in use`),
    advice: expect.stringContaining("PORT="),
  });
});

async function listen(port: number, host: string): Promise<void> {
  const server = createServer().listen(port, host);
  servers.push(server);
  await once(server, "listening");
}
