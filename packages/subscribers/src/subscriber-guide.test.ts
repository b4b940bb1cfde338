import { spawnSync } from "node:child_process";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { findLanguage, readGuideCode } from "@booking-events/harness/guide-code";
import { beforeAll, describe, expect, test } from "vitest";
import { createSigningKey } from "./signing-keys.ts";
import { Subscriber } from "./subscriber.ts";
import { testEvent } from "./to-event.ts";

/** The verifiers that the guide prints, given posts as the process sends them. */
const guide = "docs/subscriber-guide.md";
const typescript = `${readGuideCode(guide, "ts", "isAuthentic")}
for await (const text of process.stdin.setEncoding("utf8")) {
  const cases = JSON.parse(text);
  console.log(JSON.stringify(cases.map(({ headers, body, secret }) => isAuthentic(headers, Buffer.from(body, "base64"), secret))));
}`;
const python = `${readGuideCode(guide, "python", "is_authentic")}
import json, sys
print(json.dumps([is_authentic(one["headers"], base64.b64decode(one["body"]), one["secret"]) for one in json.load(sys.stdin)]))`;
const php = `${readGuideCode(guide, "php", "isAuthentic")}
$verify = fn($one) => isAuthentic($one['headers'], base64_decode($one['body']), $one['secret']);
echo json_encode(array_map($verify, json_decode(stream_get_contents(STDIN), true)));`;

const languages = [
  {
    ...findLanguage("TypeScript", process.execPath, ["--version"]),
    args: ["--input-type=module-typescript", "--eval", typescript],
  },
  { ...findLanguage("Python", "python3", ["-c", "import hmac"]), args: ["-c", python] },
  { ...findLanguage("PHP", "php", ["-r", "exit(function_exists('hash_hmac') ? 0 : 1);"]), args: ["-r", php] },
];

interface Post {
  headers: IncomingHttpHeaders;
  body: Buffer;
}

const [secret, oldSecret] = [createSigningKey("hmac"), createSigningKey("hmac")];
let post: Post;

beforeAll(async () => {
  const posts: Post[] = [];
  const server = createServer(async (request, response) => {
    posts.push({ headers: request.headers, body: await buffer(request) });
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const subscriber = new Subscriber({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    signingKey: secret,
    previousKey: { key: oldSecret, until: new Date(Date.now() + 60_000) },
    maxConnections: 1,
    network: { allowPrivate: true },
  });
  const body = JSON.stringify({ ...testEvent(new Date()), data: { sent: { consumerGivenName: "Zoë 😀" } } });
  await subscriber.post({ id: "arrivals-4711", body, signal: new AbortController().signal });
  subscriber.close();
  server.close();
  [post] = posts as [Post];
});

describe.each(languages)("in $title,", ({ program, args, isHere }) => {
  test.skipIf(!isHere)("the printed verifier takes our posts, in a rotation too, and nothing else", () => {
    const { headers, body } = post;
    const base = { headers, body, secret };
    const cases = [
      base,
      { ...base, secret: oldSecret },
      { ...base, secret: createSigningKey("hmac") },
      { ...base, body: Buffer.concat([body, Buffer.from(" ")]) },
      { ...base, headers: { ...headers, "webhook-id": "arrivals-4712" } },
      { ...base, headers: { ...headers, "webhook-timestamp": String(Math.floor(Date.now() / 1_000) - 301) } },
      { ...base, headers: { ...headers, "webhook-timestamp": "soon" } },
      { ...base, headers: { ...headers, "webhook-signature": "v1," } },
      { ...base, headers: { ...headers, "webhook-signature": "é v1" } },
      { ...base, headers: {} },
    ];
    const input = JSON.stringify(cases.map((one) => ({ ...one, body: one.body.toString("base64") })));
    const { stdout, stderr } = spawnSync(program, args, { input, encoding: "utf8" });
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toEqual([true, true, ...cases.slice(2).map(() => false)]);
  });
});
