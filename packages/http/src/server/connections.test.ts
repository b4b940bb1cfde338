import { spawnSync } from "node:child_process";
import { once } from "node:events";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { waitFor } from "@booking-events/harness";
import { createMetrics } from "@booking-events/runtime";
import { afterEach, expect, test } from "vitest";
import { Connections } from "./connections.ts";
import { PartnerFacingServer, serverLimits } from "./partner-facing-server.ts";

let server: PartnerFacingServer;
const clients: Socket[] = [];

afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await server.stop();
});

/** `/partner` has a valid secret; a path that ends in `wait` is answered when the test says so. */
async function startServer(maxConnections: number, limits: Partial<typeof serverLimits> = {}) {
  const metrics = createMetrics("test");
  const connections = new Connections({ app: "ingest", maxConnections, metrics });
  const waiting: ServerResponse[] = [];
  const handle: RequestListener = (req, res) => {
    if (req.url?.startsWith("/partner")) connections.markAuthentic(req.socket, "acme");
    if (req.url?.endsWith("wait")) waiting.push(res);
    else setImmediate(() => res.end());
  };
  server = new PartnerFacingServer({
    handle,
    mayHaveBody: () => true,
    connections,
    keepAliveTimeoutMs: 60_000,
    observe: () => {},
    limits: { ...serverLimits, ...limits },
  });
  server.server.listen(0, "127.0.0.1");
  await once(server.server, "listening");
  const { port } = server.server.address() as AddressInfo;

  async function open(path?: string): Promise<Socket> {
    const opened = once(server.server, "connection");
    const client = connect(port, "127.0.0.1");
    clients.push(client);
    client.on("error", () => {});
    client.resume();
    await opened;
    if (path !== undefined) {
      const reached = once(server.server, "request");
      client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
      await reached;
      if (!path.endsWith("wait"))
        await waitFor(() =>
          [...connections.all()].every(
            (c) => c.requestsUnderWay === 0 || waiting.includes(c.newestResponse as ServerResponse),
          ),
        );
    }
    return client;
  }
  const closed = (client: Socket) => waitFor(() => client.closed);
  const count = async (reason: string) =>
    (await metrics.getSingleMetric("ingest_connections_closed_total")?.get())?.values.find(
      ({ labels }) => labels["reason"] === reason,
    )?.value ?? 0;
  return { connections, waiting, open, closed, count, port };
}

test("a new connection replaces the oldest one that never sent a valid secret", async () => {
  const { open, closed, count } = await startServer(3);
  const partner = await open("/partner");
  const [older, newer] = [await open(), await open()];
  const next = await open("/partner");
  await closed(older);
  expect([partner, newer, next].map((client) => client.closed)).toEqual([false, false, false]);
  expect(await count("stranger")).toBe(1);
});

test("a stranger's connection is replaced even during a request", async () => {
  const { open, closed } = await startServer(2);
  const partner = await open("/partner");
  const stranger = await open("/wait");
  await open();
  await closed(stranger);
  expect(partner.closed).toBe(false);
});

test("if all sent a valid secret, a new connection replaces the one that has been idle the longest", async () => {
  const { open, closed, count } = await startServer(3);
  const [first, second] = [await open("/partner"), await open("/partner")];
  const busy = await open("/partner/wait");
  first.write("GET /partner HTTP/1.1\r\nHost: x\r\n\r\n");
  await once(server.server, "request");
  await once(first, "data");
  await open("/partner");
  await closed(second);
  expect([first.closed, busy.closed]).toEqual([false, false]);
  expect(await count("idle")).toBe(1);
});

test("if all are busy, the new one is closed; once one is idle, there is room again", async () => {
  const { open, closed, count, waiting, connections } = await startServer(2);
  const busy = [await open("/partner/wait"), await open("/partner/wait")];
  const refused = await open();
  await closed(refused);
  expect(busy.map((client) => client.closed)).toEqual([false, false]);
  expect([await count("refused"), await count("idle")]).toEqual([1, 0]);
  waiting[0]?.end();
  await waitFor(() => [...connections.all()].some(({ requestsUnderWay }) => requestsUnderWay === 0));
  const next = await open("/partner");
  await closed(busy[0] as Socket);
  expect([next.closed, busy[1]?.closed]).toEqual([false, false]);
});

test("a request with a pace of its own may be without traffic, until the client must only read the rest", async () => {
  const { open, closed, waiting, connections } = await startServer(2, { unreadAnswerTimeoutMs: 200 });
  const paced = await open("/partner/wait");
  const limitTime = connections.markPaced(waiting[0] as ServerResponse);
  await closed(await open("/partner/wait"));
  expect(paced.closed).toBe(false);
  limitTime();
  await closed(paced);
});

test("a connection that was reset before it was accepted is closed, and what it sent is not handled", async () => {
  const { count, port } = await startServer(2);
  const requests: string[] = [];
  server.server.on("request", ({ url = "" }: IncomingMessage) => requests.push(url));
  // Nothing is accepted while this process waits for the other one.
  const client = `
    const socket = require("node:net").connect(${port}, "127.0.0.1");
    socket.write("GET /partner HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n", () => socket.resetAndDestroy());`;
  expect(spawnSync(process.execPath, ["-e", client], { timeout: 20_000 })).toMatchObject({ status: 0 });
  const answer = await fetch(`http://127.0.0.1:${port}/partner/later`);
  expect(answer.ok).toBe(true);
  expect(requests).toEqual(["/partner/later"]);
  expect(await count("gone")).toBe(1);
});
