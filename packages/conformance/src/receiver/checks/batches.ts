import { type Check, check, describeAnswer } from "../check.ts";
import { refused, secretRefused } from "../expectations.ts";
import { bookingFor, bookingJson, create, forEach } from "../payloads.ts";
import type { Receiver } from "../receiver.ts";
import { secretPlaceholder } from "../request.ts";

const ndjson = "application/x-ndjson";
const batchPath = `/booking-event/batch/${secretPlaceholder}`;
const withBearer = { path: "/booking-event/batch", headers: [`Authorization: Bearer ${secretPlaceholder}`] };

export const batchChecks: readonly Check[] = [
  {
    source: "ours",
    name: "batch/lines",
    demand: "Each line of a batch gets a line, in order, with the status and code that its event would have got alone.",
    run: findWrongLines,
  },
  check(
    "batch/refused",
    "A batch with a wrong secret gets 403. One that is not NDJSON in UTF-8, or is compressed, gets 415.",
    {
      label: "secret",
      request: create({ path: "/booking-event/batch/conformance-nobody", type: ndjson }),
      expect: secretRefused,
    },
    ...forEach(
      ["application/json", "text/plain", `${ndjson}; charset=utf-16`],
      (type) => create({ path: batchPath, type }),
      refused(415, "unsupported-type"),
    ),
    {
      label: "gzip",
      request: create({ path: batchPath, type: ndjson, headers: ["Content-Encoding: gzip"] }),
      expect: refused(415, "unsupported-encoding"),
    },
  ),
];

async function findWrongLines(receiver: Receiver): Promise<string[]> {
  const payload = bookingFor(receiver.newReference());
  const event = { kind: "create", payload };
  const lines: [text: string, status?: number, code?: string][] = [
    [JSON.stringify({ ...event, idempotencyKey: "conformance" }), 200],
    [JSON.stringify({ ...event, kind: "update", payload: { ...payload, consumerPhone: null } }), 422, "invalid-data"],
    [""],
    ["{", 400, "malformed-json"],
    [JSON.stringify({ ...event, kind: "cancel" }), 400, "invalid-line"],
    [JSON.stringify({ ...event, idempotencyKey: "é" }), 400, "invalid-idempotency-key"],
    [`${bookingJson(receiver.newReference())}`.padEnd(70_000), 413, "body-too-large"],
    [JSON.stringify({ ...event, kind: "delete" }), 200],
  ];
  const expected = lines.flatMap(([, status, code], index) =>
    status === undefined ? [] : [[index + 1, status, code]],
  );
  const body = lines.map(([text]) => text).join("\n");
  const seen: string[] = [];
  for (const place of [{ path: batchPath }, withBearer, { path: batchPath, framing: "chunked" as const }]) {
    const answer = await receiver.send({ ...place, type: ndjson, body });
    const got = answer.body.split("\n").filter(Boolean).map(readLine);
    if (answer.status === 200 && JSON.stringify(got) === JSON.stringify(expected)) continue;
    seen.push(
      `${JSON.stringify(got)} instead of ${JSON.stringify(expected)} (${describeAnswer(answer, receiver.secret)})`,
    );
  }
  return seen;
}

function readLine(text: string): unknown[] {
  try {
    const { line, status, code } = JSON.parse(text);
    return [line, status, code];
  } catch {
    return ["no JSON"];
  }
}
