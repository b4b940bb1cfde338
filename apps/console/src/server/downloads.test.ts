import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { OperationCancelled } from "@booking-events/operations";
import { createLogger } from "@booking-events/runtime";
import Router from "@koa/router";
import Koa from "koa";
import { expect, onTestFinished, test } from "vitest";
import type { ConsoleContext } from "../context.ts";
import { roles } from "../login/roles.ts";
import { errorBoundary } from "./error-boundary.tsx";
import { type PageState, Pages } from "./pages.ts";

type Make = (write: (text: string) => Promise<void>) => Promise<void>;

/** @returns a function that downloads what `make` writes */
async function serve(make: Make, limits?: { unreadTimeoutMs: number }) {
  const router = new Router<PageState>();
  const operations = { environment: { PARTNERS_FILE: "/nothing" }, now: () => new Date() };
  const pages = new Pages(router, { operations, runbookUrl: undefined } as unknown as ConsoleContext, limits);
  pages.download(
    "/file",
    () => "file.csv",
    (_, write) => make(write),
  );
  const app = new Koa();
  app.silent = true;
  app.use(errorBoundary(createLogger({ name: "console", level: "silent" })));
  app.use((ctx, next) => {
    ctx.state = { visitor: { name: "Ada", roles }, notices: [], leaveNotices() {} };
    return next();
  });
  const server = app.use(router.routes()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/file`;
  return {
    download: (signal: AbortSignal | null = null) =>
      fetch(url, { method: "POST", body: new URLSearchParams(), signal }),
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}

test("exports that nobody reads to their end leave connections to the other pages, and the next one waits", async () => {
  const gate = Promise.withResolvers<void>();
  await using desk = await serve(async (write) => {
    await write("a line\n");
    await gate.promise;
  });
  const running = [await desk.download(), await desk.download()];
  const refused = await desk.download();
  expect([refused.status, await refused.text()]).toEqual([422, expect.stringContaining("2 exports run already.")]);
  gate.resolve();
  expect(await Promise.all(running.map((answer) => answer.text()))).toEqual(["a line\n", "a line\n"]);
  expect(await (await desk.download()).text()).toBe("a line\n");
});

function makeEndlessly() {
  const { promise: ending, resolve: end } = Promise.withResolvers<unknown>();
  const make: Make = async (write) => {
    try {
      for (;;) await write("x".repeat(100_000));
    } catch (error) {
      end(error);
      throw error;
    }
  };
  return { make, ending };
}

test("an export whose reader goes is cancelled, and not refused: a part of it has left", async () => {
  const { make, ending } = makeEndlessly();
  await using desk = await serve(make);
  const reader = new AbortController();
  await desk.download(reader.signal);
  reader.abort();
  expect(await ending).toBeInstanceOf(OperationCancelled);
});

test("an export that is not read any more is cancelled, although its reader stays", async () => {
  const { make, ending } = makeEndlessly();
  await using desk = await serve(make, { unreadTimeoutMs: 200 });
  const reader = new AbortController();
  onTestFinished(() => reader.abort());
  await desk.download(reader.signal);
  expect(await ending).toBeInstanceOf(OperationCancelled);
});
