import { createInterface } from "node:readline";
import { inspect } from "node:util";
import { BookingEventsError, createBookingEventsClient, digestOf } from "./booking-events.js";

function native(value) {
  if (Array.isArray(value)) return value.map(native);
  if (typeof value !== "object" || value === null) return value;
  if ("$object" in value) return {};
  if ("$day" in value) return value.$day;
  if ("$time" in value) return value.$time;
  if ("$integer" in value) return Number(value.$integer);
  if ("$float" in value) return Number(value.$float);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, native(member)]));
}

async function collect(generator) {
  const items = [];
  for (;;) {
    const { done, value } = await generator.next();
    if (done) return { items, end: value };
    items.push(value);
  }
}

async function perform(client, { method, payload: sent, key, dryRun, allowEmpty, fields }) {
  const payload = native(sent);
  switch (method) {
    case "digest":
      return digestOf(payload);
    case "receipt":
      return (await client.receipt(payload)) ?? null;
    case "booking":
      return (
        (await client.booking(payload, {
          referenceKind: "consumer",
          fields: fields === "" ? [] : fields.split(","),
        })) ?? null
      );
    case "activity":
      return client.activity(payload === null ? {} : { day: payload });
    case "reconcile":
      return collect(client.reconcile(payload, { allowEmpty }));
    case "batch":
      return collect(client.batch(payload));
    default:
      return client[method](payload, { dryRun, ...(key === null ? {} : { idempotencyKey: key }) });
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const call = JSON.parse(line);
  const { baseUrl, secret, maxAttempts } = call;
  const shown = [];
  let result;
  try {
    const client = createBookingEventsClient({
      baseUrl,
      lookupUrl: call.lookupUrl ?? undefined,
      secret,
      maxAttempts,
      firstRetryDelayMs: call.firstRetryDelayS * 1_000,
      attemptTimeoutMs: call.attemptTimeoutS * 1_000,
      totalTimeoutMs: call.totalTimeoutS * 1_000,
    });
    shown.push(inspect(client, { showHidden: true }));
    result = { answer: await perform(client, call) };
  } catch (error) {
    shown.push(inspect(error, { showHidden: true }), String(error.stack));
    if (error instanceof BookingEventsError) {
      const {
        message,
        code,
        retryable,
        attempts,
        status = null,
        requestId = null,
        violationList,
        retryAfterMs,
      } = error;
      const key = error.idempotencyKey ?? null;
      const retryAfterS = retryAfterMs === undefined ? null : retryAfterMs / 1_000;
      result = { message, code, retryable, attempts, key, status, requestId, violations: violationList, retryAfterS };
    } else {
      result = { invalid: error.message };
    }
  }
  console.log(JSON.stringify({ result, shown }));
}
