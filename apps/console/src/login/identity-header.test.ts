import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { type IdentityHeaders, readIdentityHeader, toProxies } from "./identity-header.ts";

const headers = { name: "x-forwarded-email", groups: "x-forwarded-groups" };

test("a listed proxy says who asks", async () => {
  const lines = ["X-Forwarded-Email: ada@example.com", "X-Forwarded-Groups: on-call, support,"];
  const expected = { name: "ada@example.com", groups: ["on-call", "support"] };
  for (const ranges of [["127.0.0.1"], ["10.0.3.7", "127.0.0.0/8"], ["::ffff:127.0.0.1"]])
    expect([ranges, await ask(lines, ranges)]).toEqual([ranges, expected]);
  // A server on all addresses of both families sees such addresses.
  expect(await ask(lines, ["127.0.0.1"], "::ffff:127.0.0.1")).toEqual(expected);
});

test("from any other address the header counts for nothing", async () => {
  for (const ranges of [[], ["127.0.0.2"], ["10.0.0.0/8"], ["::1"]])
    expect(await ask(["X-Forwarded-Email: ada@example.com", "X-Forwarded-For: 127.0.0.2"], ranges)).toBeUndefined();
});

test.each([
  ["no name", []],
  ["an empty name", ["X-Forwarded-Email: "]],
  ["two names", ["X-Forwarded-Email: eve@example.com", "X-Forwarded-Email: ada@example.com"]],
  [
    "groups twice",
    ["X-Forwarded-Email: ada@example.com", "X-Forwarded-Groups: on-call", "X-Forwarded-Groups: support"],
  ],
])("a listed proxy that says %s says nothing", async (_, lines) => {
  expect(await ask(lines, ["127.0.0.1"])).toBeUndefined();
});

test("groups count only by the header that is named for them", async () => {
  const lines = ["X-Forwarded-Email: ada@example.com", "X-Forwarded-Groups: on-call"];
  expect(await ask(lines, ["127.0.0.1"], undefined, null)).toEqual({ name: "ada@example.com", groups: [] });
});

/** What is read of a request with these lines, which comes from 127.0.0.1, or seems to come from another address. */
async function ask(
  lines: string[],
  ranges: string[],
  address?: string,
  groups: IdentityHeaders["groups"] | null = headers.groups,
) {
  const server = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const asked = new Promise<IncomingMessage>((resolve) => server.once("request", resolve));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.write(["GET / HTTP/1.1", "Host: localhost", ...lines, "", ""].join("\r\n"));
  const req = await asked;
  if (address !== undefined) Object.defineProperty(req.socket, "remoteAddress", { value: address });
  const identity = readIdentityHeader(req, {
    name: headers.name,
    groups: groups ?? undefined,
    proxies: toProxies(ranges),
  });
  socket.destroy();
  return identity;
}
