import { createHash } from "node:crypto";
import { request } from "node:http";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { openDigestKey } from "@booking-events/store";
import { expect, test } from "vitest";
import { prepareSurroundings, type RunningApp } from "./surroundings.ts";

const secret = "a-secret-of-the-large-lists-0123456789ab";
const surroundings = prepareSurroundings(secret);

const bookings = 1_000_000;
const step = 1_000;
/** The memory of the container. */
const maxMemoryBytes = 512 * 1_024 * 1_024;

/** Bookings with a payload of ordinary size. */
async function fillBookings(): Promise<void> {
  const { pool } = surroundings();
  const { digestContent } = await openDigestKey(pool, undefined);
  const payload = JSON.stringify({ note: "x".repeat(900) });
  for (let first = 1; first <= bookings; first += 100_000) {
    const digests = Array.from({ length: 100_000 }, (_, index) => digestContent(digestOf(`TRIP-${first + index}`)));
    await pool.query(
      `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, payload,
         content_digest, last_sequence, revision, created_at, updated_at)
       select sha256(convert_to('acme', 'UTF8') || '\\x00'::bytea || convert_to('TRIP-' || n, 'UTF8')), 'acme', 'trip',
         'TRIP-' || n, 'active', gen_random_uuid(), n, '${payload}'::jsonb, decode(digest, 'hex'), n, 1,
         now() - interval '1 day' + n * interval '1 ms', now()
       from unnest($1::text[]) with ordinality as digests (digest, place), lateral (select ${first - 1} + place as n)`,
      [digests],
    );
  }
  await pool.query("analyze bookings");
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** One line in a thousand has another digest, and one names a booking that was never sent instead of ours. */
function* listLines(): Generator<string> {
  let lines = "";
  for (let n = 1; n <= bookings; n += 1) {
    const reference = n % step === 1 ? `NEVER-${n}` : `TRIP-${n}`;
    const digest = digestOf(n % step === 2 ? "other" : reference);
    lines += `{"reference":"${reference}","digest":"${digest}"}\n`;
    if (n % 500 !== 0) continue;
    yield lines;
    lines = "";
  }
}

async function reconcile(lookup: RunningApp): Promise<{ lines: number; last: unknown }> {
  const outgoing = request(`${lookup.url}/booking-event/reconcile/${secret}`, {
    method: "POST",
    headers: { "Content-Type": "application/x-ndjson" },
  });
  Readable.from(listLines()).pipe(outgoing);
  const response = await new Promise<Readable>((resolve, reject) =>
    outgoing.once("response", resolve).once("error", reject),
  );
  let [lines, last] = [0, ""];
  for await (const line of createInterface({ input: response })) [lines, last] = [lines + 1, line];
  return { lines, last: JSON.parse(last) };
}

test("a million references are compared in one request, in bounded memory, while receipts are answered", async () => {
  await fillBookings();
  // As in its container.
  const environment = { NODE_OPTIONS: "--max-old-space-size=320" };
  const lookup = await surroundings().start("lookup", { environment });
  const startedAtMs = performance.now();
  let isDone = false;
  const reconciling = reconcile(lookup).finally(() => {
    isDone = true;
  });
  let [receipts, slowestMs, memoryBytes] = [0, 0, 0];
  while (!isDone) {
    const askedAtMs = performance.now();
    const path = `/booking-event/receipt/${secret}/01a1fb0c-d72c-7345-a7ee-38bfa851309c`;
    expect((await fetch(`${lookup.url}${path}`)).status).toBe(404);
    slowestMs = Math.max(slowestMs, performance.now() - askedAtMs);
    receipts += 1;
    const [, bytes] = /^process_resident_memory_bytes\S* (\S+)$/m.exec(await lookup.metrics()) ?? [];
    memoryBytes = Math.max(memoryBytes, Number(bytes));
  }
  const { lines, last } = await reconciling;
  const seconds = (performance.now() - startedAtMs) / 1_000;
  const differing = bookings / step;
  expect(last).toEqual({
    summary: {
      references: bookings,
      same: bookings - 2 * differing,
      missing: differing,
      different: differing,
      "deleted-here": 0,
      erased: 0,
      unknown: differing,
    },
  });
  expect(lines).toBe(3 * differing + 1);
  expect(memoryBytes).toBeLessThan(maxMemoryBytes);
  console.log(
    `${seconds.toFixed(1)} s, ${Math.round(memoryBytes / 1_024 ** 2)} MiB, ${receipts} receipts meanwhile, the slowest in ` +
      `${Math.round(slowestMs)} ms`,
  );
}, 600_000);
