import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { check } from "@booking-events/chaos/check";
import type { Intent } from "@booking-events/chaos/histories";
import type { Post } from "@booking-events/chaos/post-events";
import { type BookingRow, readDatabase } from "@booking-events/chaos/read-database";
import { waitFor } from "@booking-events/harness";
import { copyCluster, takeBaseBackup, writeToCluster } from "@booking-events/harness/base-backup";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { printedByOps } from "./run-ops.ts";
import { duplicateWindowMs, type SteadyLoad, startLoad, writeLoadPartners } from "./steady-load.ts";
import { useOwnServices } from "./surroundings.ts";

/**
 * Backs PostgreSQL up as docs/operations/change.md describes, destroys it under load, restores it, and counts what is lost.
 */
const folder = mkdtempSync(join(tmpdir(), "booking-events-restore-"));
const archive = mkdtempSync(join(folder, "archive-"));
const backup = join(folder, "backup");
const archiveTimeoutSeconds = 10;
const segmentBytes = 16n * 1_024n * 1_024n;
const perSecond = 100;
/** Each has one partner. */
const bookings = 200;

const own = useOwnServices("a-secret-of-the-restore-tests-0123456789", {
  archive_mode: "on",
  archive_command: `test ! -f ${archive}/%f && cp %p ${archive}/%f.part && mv ${archive}/%f.part ${archive}/%f`,
  archive_timeout: `${archiveTimeoutSeconds}s`,
});
let secretOf: (partner: string) => string;
const loads: SteadyLoad[] = [];

beforeAll(() => {
  // PostgreSQL's own user must get to it.
  chmodSync(folder, 0o711);
  chmodSync(archive, 0o777);
  own.environment["PARTNERS_FILE"] = join(folder, "partners.json");
  secretOf = writeLoadPartners(own.environment["PARTNERS_FILE"]);
});

afterEach(async () => {
  for (const load of loads.splice(0)) await load.close();
});

afterAll(() => rmSync(folder, { recursive: true }));

/** Each booking gets a new version every two seconds, so the order of its versions is certain. */
function* inventVersions(): Generator<Intent, never> {
  for (let index = 0; ; index += 1) {
    const reference = `TRIP-${index % bookings}`;
    const version = Math.floor(index / bookings);
    // One partner sends keys, the other does not.
    const isKeyed = index % 2 === 0;
    const isDeleted = version % 4 === 3;
    const content = isDeleted ? {} : { consumerGivenName: `version ${version}` };
    const payload = { consumerTripPartnerExternalReference: reference, ...content };
    yield {
      partner: isKeyed ? "acme" : "globe",
      kind: isDeleted ? "delete" : "update",
      reference,
      payload,
      idempotencyKey: isKeyed ? `${reference}-${version}` : null,
      contentType: "application/json",
      body: JSON.stringify(payload),
    };
  }
}

function start(ingestUrl: string, intents: Iterator<Intent>, count?: number): SteadyLoad {
  const { environment } = own;
  const load = startLoad({ ingestUrls: [ingestUrl], secretOf, environment, perSecond, intents, count });
  loads.push(load);
  return load;
}

const dataFolder = () => join(own.postgres.home, "data");

async function destroyPostgres(): Promise<void> {
  own.postgres.kill("SIGKILL");
  await own.postgres.ended();
  rmSync(dataFolder(), { recursive: true });
}

/** @param target further settings, such as `recovery_target_time`; by default, all of the archived WAL is replayed */
async function restore(target = ""): Promise<void> {
  await copyCluster(backup, dataFolder());
  writeToCluster(dataFolder(), "recovery.signal", "");
  const settings = `\nrestore_command = 'cp ${archive}/%f %p'\n${target}\n`;
  await appendFile(join(dataFolder(), "postgresql.auto.conf"), settings);
  await own.postgres.restart();
}

/** Which events are in the log, and a position in the WAL at which all of them had been committed. */
async function sampleLog(): Promise<{ ids: string[]; position: bigint }> {
  const { rows: log } = await own.pool.query<{ id: string }>("select id from booking_events");
  const { rows } = await own.pool.query("select pg_current_wal_lsn() - '0/0' as position");
  return { ids: log.map(({ id }) => id), position: BigInt(rows[0].position) };
}

/** The names of WAL segments begin with the timeline; then come the upper and the lower half of the position. */
const archivedSegments = () => readdirSync(archive).filter((name) => /^00000001[0-9A-F]{16}$/.test(name));

function endOfArchive(): bigint {
  const last = archivedSegments().toSorted().at(-1) ?? "";
  const upper = BigInt(`0x${last.slice(8, 16)}`) << 32n;
  return upper + (BigInt(`0x${last.slice(16)}`) + 1n) * segmentBytes;
}

async function judge(posts: readonly Post[]) {
  const database = await readDatabase(own.pool);
  // Readers of the feed start over after a restore.
  const followedChangeIds = database.changes.map(({ id }) => id);
  return { database, ...check({ posts, database, followedChangeIds, duplicateWindowMs }) };
}

const countApplied = async () => (await own.pool.query("select count(*)::int from booking_events")).rows[0].count;

test("with PostgreSQL's disk, only what came after the last archived WAL is lost, and partners can correct that", async () => {
  const [ingest, worker] = await Promise.all([own.start("ingest"), own.start("worker")]);
  const load = start(ingest.url, inventVersions());
  const untilMore = async (count: number) => {
    const target = (await countApplied()) + count;
    await waitFor(async () => (await countApplied()) >= target, { timeoutMs: 60_000 });
  };
  await untilMore(200);
  await takeBaseBackup(own.postgres.url, dataFolder(), backup);
  await untilMore(200);
  const beforeTarget = await sampleLog();
  const [{ time }] = (await own.pool.query("select clock_timestamp()::text as time")).rows;
  const sentBeforeTarget = load.posts.length;
  const samples = [beforeTarget];
  const countArchived = archivedSegments().length;
  await waitFor(
    async () => {
      samples.push(await sampleLog());
      return archivedSegments().length > countArchived + 1;
    },
    { timeoutMs: 60_000, intervalMs: 200 },
  );
  await untilMore(300);

  await destroyPostgres();
  const acceptedBeforeLoss = load.countAcknowledged();
  await waitFor(() => load.countAcknowledged() > acceptedBeforeLoss + 100);
  expect(await worker.stop()).toBe(0);
  await restore();
  await own.start("worker");
  await load.stop();

  const { tally, violations } = await judge(load.posts);
  expect(violations.filter(({ kind }) => kind !== "lost")).toEqual([]);
  const lostIds = new Set(violations.map(({ what }) => what.slice(0, 36)));
  const archivedUntil = endOfArchive();
  const archived = samples.findLast(({ position }) => position <= archivedUntil);
  console.log(
    `Lost ${lostIds.size} of ${tally.acknowledged} acknowledged events, archived every ${archiveTimeoutSeconds} s.`,
  );
  expect(lostIds.size).toBeGreaterThan(0);
  expect(archived?.ids.length).toBeGreaterThan(beforeTarget.ids.length);
  expect(archived?.ids.filter((id) => lostIds.has(id))).toEqual([]);

  // Partners cannot know which events are lost. With the old keys, an event that is not lost would count as a repetition.
  const since = load.posts.slice(sentBeforeTarget);
  const current = new Map(
    since.map((post) => [post.reference, { ...post, idempotencyKey: `again-${post.reference}` }]),
  );
  const resending = start(ingest.url, current.values(), current.size);
  await waitFor(() => resending.countAcknowledged() === current.size, { timeoutMs: 60_000 });
  await resending.stop();
  const after = await judge([...load.posts, ...resending.posts]);
  expect(after.violations.filter(({ kind }) => kind !== "lost")).toEqual([]);
  expect(new Set(after.database.bookings.map(describeBooking))).toEqual(new Set(lastVersions(load.posts)));
  expect(await printedByOps(["bookings", "verify"], own.environment)).toContain(" 0 bookings differ");

  await destroyPostgres();
  await restore(`recovery_target_time = '${time}'\nrecovery_target_action = 'promote'`);
  const then = await judge([]);
  const restored = new Set(then.database.log.map(({ id }) => id));
  expect(beforeTarget.ids.filter((id) => !restored.has(id))).toEqual([]);
  const laterIds = load.posts
    .slice(sentBeforeTarget)
    .flatMap(({ attempts }) => attempts.flatMap(({ end }) => (end.result === "acknowledged" ? [end.eventId] : [])));
  expect(laterIds.filter((id) => restored.has(id))).toEqual([]);
  expect(then.violations.filter(({ kind }) => kind !== "unexpected")).toEqual([]);
}, 300_000);

function describeBooking({ partner, reference, state, content }: Omit<BookingRow, "sequence">): string {
  return `${partner} ${reference} ${state} ${state === "active" ? content : ""}`;
}

/** By another way than the oracle's: what was sent last counts. */
function lastVersions(posts: readonly Post[]): string[] {
  const last = new Map(posts.map((post) => [`${post.partner} ${post.reference}`, post]));
  return [...last.values()].map(({ partner, reference, kind, payload }) => {
    const content = JSON.stringify(Object.fromEntries(Object.entries(payload).toSorted()));
    return describeBooking({ partner, reference, state: kind === "delete" ? "deleted" : "active", content });
  });
}
