import { once } from "node:events";
import { createServer, connect as dial, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { clients, Network, servers } from "./network.ts";
import { waitFor } from "./wait-for.ts";

/** A server that keeps what it receives, and answers it in capitals. */
async function startEcho() {
  const sockets: Socket[] = [];
  let received = "";
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    socket.on("data", (data) => {
      received += data;
      socket.write(String(data).toUpperCase());
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { port: (server.address() as { port: number }).port, received: () => received };
}

function connectTo(port: number) {
  const socket = dial({ port, host: "127.0.0.1" });
  let answers = "";
  let hasEnded = false;
  socket.on("data", (data) => {
    answers += data;
  });
  socket
    .on("error", () => {})
    .on("close", () => {
      hasEnded = true;
    });
  onTestFinished(() => void socket.destroy());
  return { send: (text: string) => socket.write(text), answers: () => answers, hasEnded: () => hasEnded };
}

test("a cut loses what is in flight and tells nobody; the repair resets what has lost data", async () => {
  const network = new Network({ delayMs: { least: 200, most: 200 } });
  onTestFinished(() => network.close());
  const echo = await startEcho();
  const port = await network.expose("b", echo.port, "a");
  const connection = connectTo(port);
  connection.send("one ");
  await waitFor(() => connection.answers() === "ONE ");

  connection.send("two ");
  const repair = network.cut({ from: "a", to: "b" });
  const later = connectTo(await network.expose("b", echo.port, "c"));
  later.send("three ");
  // By then, "two" would have arrived.
  await waitFor(() => later.answers() === "THREE ");
  expect(echo.received()).toBe("one three ");
  expect(connection.hasEnded()).toBe(false);

  repair();
  await waitFor(connection.hasEnded);
  const again = connectTo(port);
  again.send("four ");
  await waitFor(() => again.answers() === "FOUR ");
});

test("a link can be cut one way, and among servers only", async () => {
  const network = new Network({ delayMs: { least: 1, most: 1 } });
  onTestFinished(() => network.close());
  const echo = await startEcho();
  const fromServer = connectTo(await network.expose("b", echo.port, "a"));
  const fromClient = connectTo(await network.expose("b", echo.port, clients));
  fromServer.send("x");
  await waitFor(() => fromServer.answers() === "X");

  network.cut({ from: "b", to: servers });
  fromServer.send("one ");
  await waitFor(() => echo.received().includes("one "));
  fromClient.send("two ");
  await waitFor(() => fromClient.answers() === "TWO ");
  expect(fromServer.answers()).toBe("X");
});

test("whatever the delays, all data arrives in order", async () => {
  const network = new Network({ delayMs: { least: 0, most: 20 } });
  onTestFinished(() => network.close());
  const echo = await startEcho();
  const connection = connectTo(await network.expose("b", echo.port, "a"));
  const words = Array.from({ length: 300 }, (_, index) => `${index} `);
  for (const word of words) {
    connection.send(word);
    await sleep(1);
  }
  await waitFor(() => echo.received().length === words.join("").length);
  expect(echo.received()).toBe(words.join(""));
});
