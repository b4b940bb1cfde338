import { waitFor } from "@booking-events/harness";
import { expect, test } from "vitest";
import { payloadsByStack, type StackPayload } from "./payloads-by-stack.ts";
import { type SpecificationSender, specificationSenders } from "./senders-from-the-specification.ts";
import { shareSurroundings } from "./surroundings.ts";

const secret = "a-secret-of-the-test-with-enough-characters";
const surroundings = shareSurroundings(secret);

/** The booking of a payload. */
const nameOf = (index: number) => `STACK-${index}`;

test("what common software writes is accepted, and read as its author means it", { timeout: 60_000 }, async () => {
  const [ingest] = await Promise.all([surroundings.running("ingest"), surroundings.running("worker")]);
  const answers: string[] = [];
  for (const [index, payload] of payloadsByStack.entries()) {
    answers.push(await describeAnswer(await post(ingest.url, payload, nameOf(index)), payload.source));
  }
  expect(answers).toEqual(payloadsByStack.map(({ source, warnings }) => describe(200, source, warnings)));

  await waitFor(async () => {
    const { rows } = await surroundings.pool.query("select from bookings");
    expect(rows).toHaveLength(payloadsByStack.length);
  });
  expect(await readAll()).toEqual(payloadsByStack.map(({ source, reads, keeps = {} }) => ({ source, reads, keeps })));
});

test("a partner who has only the specification has no booking refused or read wrong", { timeout: 60_000 }, async () => {
  const [ingest] = await Promise.all([surroundings.running("ingest"), surroundings.running("worker")]);
  const answers = await Promise.all(specificationSenders.map((sender) => sendAll(ingest.url, sender)));
  const accepted = specificationSenders.map(({ source, events }) =>
    events.map(({ kind, warnings }) => describe(200, `${kind} by ${source}`, warnings)),
  );
  expect(answers).toEqual(accepted);

  const events = specificationSenders.flatMap((sender) => sender.events);
  await waitFor(async () => {
    const { rows } = await surroundings.pool.query("select from booking_events");
    expect(rows).toHaveLength(events.length);
  });
  const { rows } = await surroundings.pool.query(`${selectDetails} order by bookings.reference`);
  const found = specificationSenders.map(({ source, reads }, index) => {
    return { source, reads: pick(rows[index].details, reads), state: rows[index].details.state };
  });
  expect(found).toEqual(specificationSenders.map(({ source, reads, state }) => ({ source, reads, state })));
});

/** One after another: they are about one booking. */
async function sendAll(url: string, { source, contentType, headers, events }: SpecificationSender): Promise<string[]> {
  const answers: string[] = [];
  for (const { kind, body } of events) {
    const response = await fetch(`${url}/booking-event/${kind}/${secret}`, {
      method: "POST",
      headers: { ...headers, "Content-Type": contentType },
      body,
    });
    answers.push(await describeAnswer(response, `${kind} by ${source}`));
  }
  return answers;
}

test("the matrix is large, and no source stands for two payloads", () => {
  expect(payloadsByStack.length).toBeGreaterThanOrEqual(120);
  const bodies = payloadsByStack.map(({ body, contentType, source }) => `${source} ${contentType} ${body}`);
  expect(new Set(bodies).size).toBe(bodies.length);
});

function post(url: string, payload: StackPayload, reference: string): Promise<Response> {
  const { body, contentType, headers = {} } = payload;
  return fetch(`${url}/booking-event/create/${secret}`, {
    method: "POST",
    headers: { ...headers, ...(contentType !== null && { "Content-Type": contentType }) },
    body: fillIn(body, reference),
  });
}

/** As bytes, for which fetch adds no header. */
function fillIn(body: string | Uint8Array, reference: string): Uint8Array<ArrayBuffer> {
  if (typeof body === "string")
    return new Uint8Array(
      Buffer.from(body.replace("RE\u00adF", reference.replace("ST", "ST\u00ad")).replace("REF", reference)),
    );
  const isWide = body[0] === 0xff;
  const encoding = isWide ? "utf16le" : "latin1";
  return new Uint8Array(Buffer.from(Buffer.from(body).toString(encoding).replace("REF", reference), encoding));
}

async function describeAnswer(response: Response, source: string): Promise<string> {
  const answer = (await response.json()) as {
    message?: string;
    violationList?: unknown;
    warnings?: { code: string }[];
  };
  const codes = (answer.warnings ?? []).map(({ code }) => code).toSorted();
  const problem = response.status === 200 ? "" : ` ${JSON.stringify(answer)}`;
  return describe(response.status, source, codes) + problem;
}

function describe(status: number, source: string, codes: string[]): string {
  return `${status} ${source}: ${codes.join(", ") || "no warning"}`;
}

/** Dates and moments as text, in UTC. */
const selectDetails = `
  select to_jsonb(booking_details) || jsonb_build_object(
      'consumer_trip_arrival_at', (booking_details.consumer_trip_arrival_at at time zone 'UTC')::text || '+00'
    ) as details,
    (select jsonb_object_agg(key, value::text) from jsonb_each(payload)) as payload
  from booking_details join bookings using (booking_id)`;

function pick<Value>(from: Record<string, Value>, names: object): Record<string, Value | undefined> {
  return Object.fromEntries(Object.keys(names).map((name) => [name, from[name]]));
}

/** Reads of each payload's booking what the payload expects. */
async function readAll() {
  const { rows } = await surroundings.pool.query<{ details: Record<string, unknown>; payload: Record<string, string> }>(
    `${selectDetails} order by substring(bookings.reference from '[0-9]+')::int`,
  );
  return payloadsByStack.map(({ source, reads, keeps = {} }, index) => {
    const { details = {}, payload = {} } = rows[index] ?? {};
    return { source, reads: pick(details, reads), keeps: pick(payload, keeps) };
  });
}
