import { randomBytes, randomUUID } from "node:crypto";
import { waitFor } from "@booking-events/harness";
import { partner } from "@booking-events/harness/partners";
import { noLimit, writePartnersFile } from "@booking-events/harness/partners-file";
import { runOps } from "@booking-events/ops/testing/run-ops";
import { bookingKey, insertEvents, insertSubscription, writeDeadLetter } from "@booking-events/store";
import { createSigningKey } from "@booking-events/subscribers";
import { expect } from "vitest";
import { postAccepted, postOnce } from "./post-event.ts";
import type { SharedSurroundings } from "./surroundings.ts";

/** Markup, characters that turn the direction of what follows, and as much as a partner may send. */
export const hostile = {
  reference: '"><script>document.title = "owned"</script>\u202e',
  name: "<img src=x onerror=\"document.title='owned'\">\u202e\u2066",
  note: `<b>${"long ".repeat(1_600)}</b>`,
};

const weekMs = 7 * 86_400_000;
const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);

/** Fills all pages of the console as two weeks of use do, with hostile values wherever somebody else writes one. */
export async function fillConsole(own: SharedSurroundings, secret: string): Promise<void> {
  // It makes the tables.
  await own.running("worker");
  await insertPast(own);
  await subscribe(own);
  const [ingest] = await Promise.all([own.running("ingest"), own.running("webhooks")]);
  const names = ["Ada Lovelace", "Grace Hopper", "Zoë Müller-Łukasiewicz", hostile.name];
  for (const [index, consumerName] of names.entries())
    for (const reference of [`TRIP-${1000 + index}`, `TRIP-${2000 + index}`])
      await postAccepted(ingest, {
        secret,
        reference,
        fields: {
          consumerName,
          consumerEmail: `guest${index}@example.com`,
          consumerPhone: "+44 20 7183 8750",
          consumerTripArrivalDate: tomorrow,
        },
      });
  await postAccepted(ingest, {
    secret,
    reference: hostile.reference,
    fields: { notes: hostile.note, consumerTripArrivalDate: tomorrow },
  });
  for (const notes of ["late arrival", "no stairs"])
    await postAccepted(ingest, {
      secret,
      kind: "update",
      reference: "TRIP-1000",
      fields: { notes, consumerMail: "x" },
    });
  await postAccepted(ingest, { secret, kind: "delete", reference: "TRIP-1001" });
  for (let times = 0; times < 3; times += 1) await postOnce(ingest, { secret, fields: { consumerPhone: null } });
  await waitFor(async () => {
    const { rows } = await own.pool.query("select from bookings where reference = 'TRIP-1001' and state = 'deleted'");
    expect(rows).toHaveLength(1);
  });
  await insertDeadLetter(own);
  const ops = async (...args: string[]) => {
    const { exitCode, stderr } = await runOps(args, { environment: { ...own.environment, OPERATOR: "<b>Ada</b>" } });
    expect([exitCode, stderr]).toEqual([0, expect.anything()]);
  };
  await ops("partners", "hold", "globex");
  await ops("guests", "erase", "--email", "guest1@example.com", "--reason", "<i>asked</i>", "--yes");
}

/** The log of two weeks, of three partners. */
async function insertPast({ pool, environment }: SharedSurroundings): Promise<void> {
  const ids = ["acme", "globex", "initech"];
  const events = Array.from({ length: 3_000 }, (_, number) => {
    const receivedAt = new Date(Date.now() - Math.floor((number / 3_000) ** 1.5 * 2 * weekMs) - 120_000);
    const partnerId = ids[number % 7 === 0 ? 1 : number % 11 === 0 ? 2 : 0] ?? "";
    const hex = receivedAt.getTime().toString(16).padStart(12, "0");
    return {
      id: `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${randomBytes(6).toString("hex")}`,
      partner: partnerId,
      ...({ kind: "create", referenceKind: "trip", reference: `PAST-${number}`, sequence: number + 1 } as const),
      bookingKey: bookingKey(partnerId, "trip", `PAST-${number}`),
      contentDigest: "00".repeat(32),
      ...({ outcome: "created", payload: "{}", warnings: number % 13 === 0 ? ["similar-name"] : [] } as const),
      idempotencyKey: null,
      duplicateOf: null,
      after: null,
      receivedAt,
    };
  });
  for (let from = 0; from < events.length; from += 500) await insertEvents(pool, events.slice(from, from + 500));
  const file = environment["PARTNERS_FILE"] ?? "";
  const acme = partner(
    "acme",
    { "a-secret-of-the-console-tests": null, old: "2026-06-01T00:00:00Z" },
    { rateLimit: noLimit },
  );
  writePartnersFile(file, [
    { ...acme, name: "Acme Travel" },
    partner("globex", { "globex-1": null }, { name: hostile.name }),
    partner("initech", {}, { enabled: false }),
  ]);
}

async function subscribe({ pool }: SharedSurroundings): Promise<void> {
  const posted = {
    ...({ url: "https://127.0.0.1:1/hook?key=theirs", mode: "every", payload: "thin", signature: "hmac" } as const),
    partners: null,
    changes: null,
    countries: null,
    arrivalFromDays: null,
    arrivalToDays: null,
    tokenSha256: null,
    createdBy: "Ada",
  };
  for (const name of ["arrivals-desk", "warehouse"])
    await insertSubscription(pool, { ...posted, name, signingKey: createSigningKey("hmac") });
  await pool.query(
    "update subscriptions set paused_at = now(), paused_by = 'Ada', pause_reason = $1 where name = 'warehouse'",
    [hostile.note],
  );
  await pool.query(
    `insert into feed_readers (name, last_id) values ('arrivals-desk', 0), ('warehouse', 0), ('nightly.report', 0)`,
  );
  await pool.query(
    `insert into feed_deliveries (reader, booking_id, change_id, attempts, first_failed_at, retry_at, died_at, failure)
     select reader, gen_random_uuid(), n, 15, now() - interval '2 hours',
       case when n % 2 = 0 then now() + interval '5 minutes' end, case when n % 2 = 1 then now() end, $1
     from (values ('arrivals-desk'), ('warehouse')) as readers (reader), generate_series(1, 4) as n`,
    [hostile.name],
  );
}

async function insertDeadLetter({ pool }: SharedSurroundings): Promise<void> {
  for (const reference of ["TRIP-1000", hostile.reference, "TRIP-NEW"])
    await writeDeadLetter(pool, {
      eventId: randomUUID(),
      partner: "acme",
      kind: "update",
      referenceKind: "trip",
      reference,
      sequence: 1,
      errorCode: "22003",
      error: hostile.name,
      attempts: 15,
      arrivalDay: tomorrow,
      envelope: Buffer.from(JSON.stringify({ version: 1, payload: { notes: hostile.note } })),
    });
}
