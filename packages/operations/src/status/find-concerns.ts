import { formatShards, type QueueStatus } from "@booking-events/queue";
import { ClockComparison } from "@booking-events/runtime";
import type { DatabaseStatus, FeedReader, Rhythm } from "@booking-events/store";
import { describeAge, describeCount, describeQuota } from "../describe.ts";
import { findOtherDatabase } from "../services/require-same-database.ts";
import type { Status } from "./read-status.ts";

/** Events are usually applied within seconds. */
const maxAgeMs = 60_000;
/** As the alert FeedReaderBehind. */
const maxReaderLagMs = 60_000;
/** As the alert FeedBreakerOpen. */
const maxBreakerOpenMs = 15 * 60_000;
/** A day before a subscription is paused. As in the alert SubscriptionFailing. */
const maxFailingMs = 4 * 86_400_000;
/** Workers create partitions for the next two months. */
const minPartitionsAheadMs = 20 * 24 * 60 * 60_000;
/** With fewer, the gaps of the sample say little about the partner. */
const minActiveSlots = 8;
const minSilenceMs = 60 * 60_000;
/** A partner is silent if it is so for longer than the longest gap of the last week, by this factor. */
const silenceFactor = 2;

/** As the alert "PartnerQuotaNearlyUsed". */
const maxQuotaShare = 0.9;

/** Sections of docs/runbook.md. */
export const sections = [
  "RedisDown",
  "RedisNotDurable",
  "RedisMemoryHigh",
  "SentinelQuorumLost",
  "DatabaseDown",
  "Another database",
  "QueuePaused",
  "IngestGone",
  "AllWorkersGone",
  "OldestEventWaits",
  "AttemptsFail",
  "DeadLettersOpen",
  "MaintenanceStale",
  "ClocksDiffer",
  "A bad release",
  "PartnerSilent",
  "PartnerQuotaNearlyUsed",
  "FeedReaderBehind",
  "FeedDeadLetters",
  "FeedBreakerOpen",
  "SubscriptionFailing",
  "SubscriptionPaused",
] as const;

/** Something that needs a person. */
export interface Concern {
  /** Sentences that say what is so, and what to do. */
  text: string;
  /** What is about it. Null: nothing is. */
  runbook: (typeof sections)[number] | null;
  /** What it is about, if that has a name. */
  about?: { partner: string } | { reader: string };
}

/** Returns what needs a person. Empty: nothing. */
export function findConcerns(status: Status): Concern[] {
  const { queue, database } = status;
  return [
    ...findMismatch(status),
    ...("problem" in queue ? [concern("RedisDown", queue.problem)] : findQueueConcerns(queue.value, status)),
    ...status.sentinelProblems.map((problem) => concern("SentinelQuorumLost", problem)),
    ...("problem" in database
      ? [concern("DatabaseDown", database.problem)]
      : findDatabaseConcerns(database.value, status)),
    ...findClockConcerns(status),
    ...status.heldPartners.map((id) =>
      concern(
        null,
        `Partner ${id} is on hold: its sender keeps its events. To take them again: ops partners release ${id}`,
        { partner: id },
      ),
    ),
    ...status.quotas.flatMap(describeQuotaConcern),
  ];
}

function concern(runbook: Concern["runbook"], text: string, about?: Concern["about"]): Concern {
  return { text, runbook, ...(about && { about }) };
}

/** @param candidates false: it is not so */
function those(...candidates: (Concern | false)[]): Concern[] {
  return candidates.filter((candidate) => candidate !== false);
}

function findMismatch({ queue, database }: Status): Concern[] {
  const identity = "value" in database ? database.value.data?.identity : undefined;
  if (!("value" in queue) || identity === undefined) return [];
  const problem = findOtherDatabase(queue.value, identity);
  return problem === null ? [] : [concern("Another database", problem)];
}

function findQueueConcerns(queue: QueueStatus, { at, memoryHighWater }: Status): Concern[] {
  const { isPaused, counts, workers, unservedShards, ingestCount, oldestQueuedAt, redis } = queue;
  const ageMs = oldestQueuedAt === null ? 0 : at.getTime() - oldestQueuedAt.getTime();
  const memoryShare = redis.maxBytes === 0 ? 0 : redis.usedBytes / redis.maxBytes;
  const unserved = formatShards(unservedShards);
  return those(
    ...queue.problems.map((problem) => concern("RedisNotDurable", problem)),
    isPaused && concern("QueuePaused", "The queue is paused. To go on: ops queue resume"),
    ingestCount === 0 && concern("IngestGone", "No ingest runs, so partners cannot send events. Start one."),
    workers.length === 0 && concern("AllWorkersGone", "No worker takes events. Start one, or look at its log."),
    workers.length > 0 &&
      unservedShards.length > 0 &&
      concern("AllWorkersGone", `No worker takes events of shards ${unserved}. Look at the logs of the workers.`),
    ageMs > maxAgeMs &&
      !isPaused &&
      concern(
        "OldestEventWaits",
        `The oldest event has waited for ${describeAge(ageMs)}. Look for the cause: ops doctor`,
      ),
    counts.delayed > 0 &&
      concern(
        "AttemptsFail",
        `Events failed and wait for another attempt: ${counts.delayed}. See why in the worker's log. Once it is fixed: ops queue retry-now`,
      ),
    memoryShare > memoryHighWater &&
      concern(
        "RedisMemoryHigh",
        `Redis uses ${Math.round(100 * memoryShare)} % of its maxmemory. See "RedisMemoryHigh" in docs/runbook.md.`,
      ),
  );
}

function findDatabaseConcerns({ problems, migrations, data }: DatabaseStatus, status: Status): Concern[] {
  const { missing, unknown, different } = migrations;
  const deadLetters = data?.deadLetters.reduce((sum, { count }) => sum + count, 0) ?? 0;
  const partitionsUntilMs = data?.partitionsUntil?.getTime() ?? 0;
  return those(
    ...problems.map((problem) => concern("DatabaseDown", problem)),
    missing.length > 0 && concern("DatabaseDown", `Migrations are missing, from ${missing[0]} on. Run: ops migrate`),
    unknown.length > 0 &&
      concern("A bad release", `The database is of a newer release (${unknown.at(-1)}). Use that release.`),
    different.length > 0 &&
      concern("A bad release", "The database was made by other files. See what to do: ops migrate"),
    deadLetters > 0 &&
      concern("DeadLettersOpen", `Events could not be applied: ${deadLetters}. Look at them: ops dead-letters list`),
    data !== null &&
      partitionsUntilMs - status.at.getTime() < minPartitionsAheadMs &&
      concern("MaintenanceStale", "The log lacks partitions of this month or the next. See why: ops maintain"),
    ...(data?.feedReaders ?? []).flatMap((reader) => describeReader(reader, status.at)),
    ...(data?.rhythms ?? []).flatMap((rhythm) => describeSilence(rhythm, status)),
  );
}

/** A server that does not answer is named elsewhere. The clocks of the others still count. */
function findClockConcerns({ queue, database }: Status): Concern[] {
  const redis = "value" in queue ? queue.value.times : [];
  const postgresql = "value" in database ? database.value.data?.times : undefined;
  const problem = new ClockComparison().findProblem({ postgresql, redis });
  return problem === null
    ? []
    : [concern("ClocksDiffer", `${problem} Meanwhile, nothing is removed, and ingest may refuse events.`)];
}

function describeQuotaConcern({ partner, bytesPerDay, bytesToday }: Status["quotas"][number]): Concern[] {
  const share = bytesToday / bytesPerDay;
  if (share <= maxQuotaShare) return [];
  const used =
    share >= 1
      ? `Partner ${partner} has used up its quota of ${describeQuota(bytesPerDay)} a day: its events are refused until midnight, UTC.`
      : `Partner ${partner} has used ${Math.floor(100 * share)} % of its quota of ${describeQuota(bytesPerDay)} a day.`;
  return [concern("PartnerQuotaNearlyUsed", `${used} See "PartnerQuotaNearlyUsed" in docs/runbook.md.`, { partner })];
}

function describeReader(reader: FeedReader, at: Date): Concern[] {
  const { name, dead } = reader;
  const gaveUp = `Reader ${name} of the feed gave up ${describeCount(dead, "booking")}. See why: ops feed dead-letters ${name}`;
  const delay = describeDelay(reader, at);
  return those(
    dead > 0 && concern("FeedDeadLetters", gaveUp, { reader: name }),
    delay !== null && concern(...delay, { reader: name }),
  );
}

/** Why a reader gets nothing, or late. Only the first reason matters. */
function describeDelay(reader: FeedReader, at: Date): [runbook: Concern["runbook"], text: string] | null {
  const { name, breakerOpenedAt, failingSince, pausedAt, lagMs } = reader;
  const since = (time: Date | null) => (time === null ? 0 : at.getTime() - time.getTime());
  if (pausedAt !== null)
    return ["SubscriptionPaused", `The subscription ${name} is paused. See why: ops subscriptions show ${name}`];
  if (since(failingSince) > maxFailingMs)
    return [
      "SubscriptionFailing",
      `Everything that reader ${name} of the feed was given has failed for ${describeAge(since(failingSince))}. See "SubscriptionFailing" in docs/runbook.md.`,
    ];
  if (since(breakerOpenedAt) >= maxBreakerOpenMs)
    return [
      "FeedBreakerOpen",
      `Reader ${name} of the feed has taken nothing for ${describeAge(since(breakerOpenedAt))}. See "FeedBreakerOpen" in docs/runbook.md.`,
    ];
  return breakerOpenedAt !== null || lagMs <= maxReaderLagMs ? null : ["FeedReaderBehind", describeLag(reader, at)];
}

function describeLag({ name, lagChanges, lagMs, hasMissedChanges, seenAt }: FeedReader, at: Date): string {
  const behind = `${describeCount(lagChanges, "change")} and ${describeAge(lagMs)} behind`;
  const seen = `It was last seen ${describeAge(at.getTime() - seenAt.getTime())} ago.`;
  const remedy = hasMissedChanges
    ? `It has missed changes that were removed. Make it start over: ops feed reset ${name}`
    : 'See "FeedReaderBehind" in docs/runbook.md.';
  return `Reader ${name} of the feed is ${behind}. ${seen} ${remedy}`;
}

function describeSilence(rhythm: Rhythm, { at, lastHeardOf, enabledPartners }: Status): Concern[] {
  const { partner, activeSlots, longestGapMs } = rhythm;
  const lastAt = lastHeardOf.get(partner);
  const isExpected = (enabledPartners?.has(partner) ?? true) && activeSlots >= minActiveSlots;
  if (lastAt === undefined || lastAt === null || !isExpected) return [];
  const silenceMs = at.getTime() - lastAt.getTime();
  if (silenceMs <= Math.max(silenceFactor * longestGapMs, minSilenceMs)) return [];
  return [
    concern(
      "PartnerSilent",
      `Partner ${partner} has been silent for ${describeAge(silenceMs)}; its longest pause of the week before was about ` +
        `${describeAge(longestGapMs)}. Ask the partner.`,
      { partner },
    ),
  ];
}
