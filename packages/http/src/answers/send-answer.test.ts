import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, expect, test } from "vitest";
import { sendAnswer } from "./send-answer.ts";

let server: Server;

afterEach(() => server.close());

test("a streamed answer's headers are sent before its body begins", async () => {
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  server = createServer((_req, res) => {
    const stream = async () => {
      await begun;
      res.write("late");
    };
    void sendAnswer(res, { status: 200, code: "reconciled", stream });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const question = request({ host: "127.0.0.1", port: (server.address() as AddressInfo).port });
  question.end();
  const [answer] = (await once(question, "response")) as [IncomingMessage];
  begin();
  expect([answer.statusCode, await text(answer)]).toEqual([200, "late"]);
});
