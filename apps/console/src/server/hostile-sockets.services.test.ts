import { connect, type Socket } from "node:net";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { afterEach, expect, test } from "vitest";
import { useConsole } from "../testing/start-console.ts";

const database = useTestDatabase();
const server = useConsole(() => ({
  DATABASE_URL: database.url,
  REDIS_URL: redisUrl(),
  QUEUE_PREFIX: uniquePrefix(),
}));

const sockets = new Set<Socket>();
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
});

function open(text = ""): Socket {
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  sockets.add(socket);
  // What it is told does not matter.
  socket.resume();
  socket.on("error", () => {});
  socket.on("close", () => sockets.delete(socket));
  socket.write(text);
  return socket;
}

const post = "POST /login HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n";
const form = "Content-Type: application/x-www-form-urlencoded\r\n";

/** The last text of each: what it goes on with, without an end. */
const clients = [
  ["sends nothing", "", ""],
  ["does not end its headers", "GET /login HTTP/1.1\r\nHost: localhost\r\nX: ", "x"],
  ["does not end its form", `${post}${form}Content-Length: 10000\r\n\r\nname=`, "x"],
  ["does not end its chunks", `${post}${form}Transfer-Encoding: chunked\r\n\r\n`, "1\r\nx\r\n"],
  [
    "asks for another protocol",
    "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "",
  ],
  ["asks for a tunnel", "CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", ""],
  ["speaks something else", "\x16\x03\x01\x02\x00\x01", ""],
] as const;

test("clients that never end what they begin are disconnected, and others are served", async () => {
  const opened = clients.map(([name, text, more]) => ({ name, more, socket: open(text) }));
  const dripping = setInterval(() => opened.forEach(({ socket, more }) => void socket.write(more)), 200);
  expect((await server.visit().get("/login")).status).toBe(200);
  const connected = () => opened.filter(({ socket }) => !socket.closed).map(({ name }) => name);
  await waitFor(() => expect(connected()).toEqual([]), { timeoutMs: 20_000 });
  clearInterval(dripping);
});

test.each([
  ["two lengths", `${post}${form}Content-Length: 4\r\nContent-Length: 5\r\n\r\nname=`],
  ["a length and chunks", `${post}${form}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
  ["two hosts", "GET /login HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"],
  ["no host", "GET /login HTTP/1.1\r\n\r\n"],
  ["a line break in a header", "GET /login HTTP/1.1\r\nHost: localhost\r\nCookie: a\rb\r\n\r\n"],
])("a request with %s is refused", async (_, text) => {
  expect(await ask(text)).toMatch(/^HTTP\/1\.1 (400|421) /);
});

/** On a connection of its own, unlike `fetch`. @returns what comes before the end */
async function ask(text: string): Promise<string> {
  const socket = open(text);
  let answer = "";
  socket.setEncoding("utf8").on("data", (chunk) => (answer += chunk));
  await waitFor(() => socket.closed || answer.includes("\r\n\r\n"));
  return answer;
}

test("clients that take all connections lose them, and an operator gets in again", async () => {
  const held = Array.from({ length: 600 }, () => open("GET /login HTTP/1.1\r\n"));
  await waitFor(() => held.filter((socket) => socket.closed).length >= 100);
  const login = "GET /login HTTP/1.1\r\nHost: localhost\r\n\r\n";
  await waitFor(async () => (await ask(login)).startsWith("HTTP/1.1 200 "), { timeoutMs: 25_000 });
});

test("a form that is too large is refused", async () => {
  const { status } = await server.visit().post("/login", { name: "x".repeat(70_000) });
  expect(status).toBe(413);
});

test("the references of a restore may be as many as their field holds, whatever their letters", async () => {
  const ada = await server.logIn();
  const { status } = await ada.post("/restore/preview", { at: "no time", references: "\u4eac".repeat(60_000) });
  expect(status).toBe(422);
});
