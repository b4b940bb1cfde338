import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Koa from "koa";
import { expect, test } from "vitest";
import { QuietKoa } from "./quiet-koa.ts";

/** The response to a request, while the app works on it. */
async function respondWith(app: Koa): Promise<ServerResponse> {
  const response = new Promise<ServerResponse>((resolve) => {
    app.use((ctx) => {
      ctx.res.end();
      resolve(ctx.res);
    });
  });
  const server = createServer(app.callback()).listen(0, "127.0.0.1");
  await once(server, "listening");
  await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  server.close();
  return response;
}

test("a response has none of Koa's listeners", async () => {
  expect(await respondWith(new QuietKoa())).not.toHaveProperty("__onFinished");
});

test("Koa itself still adds them: if this fails, delete QuietKoa", async () => {
  expect(await respondWith(new Koa())).toHaveProperty("__onFinished");
});
