import { formatShards, type QueueStatus } from "@booking-events/queue";
import { ClockComparison } from "@booking-events/runtime";
import type { DatabaseStatus, FeedReader, Rhythm } from "@booking-events/store";
import { describeAge, describeCount, describeQuota } from "../describe.ts";
import { findOtherDatabase } from "../services/require-same-database.ts";
import type { Status } from "./read-status.ts";

/** Events are usually applied within seconds. */
const maxAgeMs = 60_000;
/** As the default of `REDIS_MEMORY_HIGH_WATER`, at which ingest refuses events. */
const maxMemoryShare = 0.7;
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
    ...("problem" in queue ? [concern("RedisDown", queue.problem)] : findQueueConcerns(queue.value, status.at)),
    ...status.sentinelProblems.map((problem) => concern("SentinelQuorumLost", problem)),
    ...("problem" in database
      ? [concern("DatabaseDown", database.problem)]
      : findDatabaseConcerns(database.value, status)),
    ...findClockConcerns(status),
    ...status.heldPartners.map((id) =>
      ofPartner(
        id,
        null,
        `Partner ${id} is on hold: its sender keeps its events. To take them again: ops partners release ${id}`,
      ),
    ),
    ...status.quotas.flatMap(describeQuotaConcern),
  ];
}

const concern = (runbook: Concern["runbook"], text: string): Concern => ({ text, runbook });
const ofPartner = (partner: string, runbook: Concern["runbook"], text: string): Concern => ({
  ...{ text, runbook, about: { partner } },
});
const ofReader = (reader: string, runbook: Concern["runbook"], text: string): Concern => ({
  text,
  runbook,
  about: { reader },
});

function findMismatch({ queue, database }: Status): Concern[] {
  const identity = "value" in database ? database.value.data?.identity : undefined;
  if (!("value" in queue) || identity === undefined) return [];
  const problem = findOtherDatabase(queue.value, identity);
  return problem === null ? [] : [concern("Another database", problem)];
}

function findQueueConcerns(queue: QueueStatus, at: Date): Concern[] {
  const { isPaused, counts, workers, unservedShards, ingestCount, oldestQueuedAt, redis } = queue;
  const ageMs = oldestQueuedAt === null ? 0 : at.getTime() - oldestQueuedAt.getTime();
  const memoryShare = redis.maxBytes === 0 ? 0 : redis.usedBytes / redis.maxBytes;
  return [
    ...queue.problems.map((problem) => concern("RedisNotDurable", problem)),
    ...(isPaused ? [concern("QueuePaused", "The queue is paused. To go on: ops queue resume")] : []),
    ...(ingestCount === 0 ? [concern("IngestGone", "No ingest runs, so partners cannot send events. Start one.")] : []),
    ...(workers.length === 0
      ? [concern("AllWorkersGone", "No worker takes events. Start one, or look at its log.")]
      : []),
    ...(workers.length > 0 && unservedShards.length > 0
      ? [
          concern(
            "AllWorkersGone",
            `No worker takes events of shards ${formatShards(unservedShards)}. Look at the logs of the workers.`,
          ),
        ]
      : []),
    ...(ageMs > maxAgeMs && !isPaused
      ? [
          concern(
            "OldestEventWaits",
            `The oldest event has waited for ${describeAge(ageMs)}. Look for the cause: ops doctor`,
          ),
        ]
      : []),
    ...(counts.delayed > 0
      ? [
          concern(
            "AttemptsFail",
            `Events failed and wait for another attempt: ${counts.delayed}. See why in the worker's log. Once it is fixed: ops queue retry-now`,
          ),
        ]
      : []),
    ...(memoryShare > maxMemoryShare
      ? [
          concern(
            "RedisMemoryHigh",
            `Redis uses ${Math.round(100 * memoryShare)} % of its maxmemory. See "RedisMemoryHigh" in docs/runbook.md.`,
          ),
        ]
      : []),
  ];
}

function findDatabaseConcerns({ problems, migrations, data }: DatabaseStatus, status: Status): Concern[] {
  const { missing, unknown, different } = migrations;
  const deadLetters = data?.deadLetters.reduce((sum, { count }) => sum + count, 0) ?? 0;
  const partitionsUntilMs = data?.partitionsUntil?.getTime() ?? 0;
  return [
    ...problems.map((problem) => concern("DatabaseDown", problem)),
    ...(missing.length > 0
      ? [concern("DatabaseDown", `Migrations are missing, from ${missing[0]} on. Run: ops migrate`)]
      : []),
    ...(unknown.length > 0
      ? [concern("A bad release", `The database is of a newer release (${unknown.at(-1)}). Use that release.`)]
      : []),
    ...(different.length > 0
      ? [concern("A bad release", "The database was made by other files. See what to do: ops migrate")]
      : []),
    ...(deadLetters > 0
      ? [concern("DeadLettersOpen", `Events could not be applied: ${deadLetters}. Look at them: ops dead-letters list`)]
      : []),
    ...(data !== null && partitionsUntilMs - status.at.getTime() < minPartitionsAheadMs
      ? [concern("MaintenanceStale", "The log lacks partitions of this month or the next. See why: ops maintain")]
      : []),
    ...(data?.feedReaders ?? []).flatMap((reader) => describeReader(reader, status.at)),
    ...(data?.rhythms ?? []).flatMap((rhythm) => describeSilence(rhythm, status)),
  ];
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
  return [ofPartner(partner, "PartnerQuotaNearlyUsed", `${used} See "PartnerQuotaNearlyUsed" in docs/runbook.md.`)];
}

function describeReader(reader: FeedReader, at: Date): Concern[] {
  const { name, dead, breakerOpenedAt, failingSince, pausedAt } = reader;
  const deadLetters =
    dead === 0
      ? []
      : [
          ofReader(
            name,
            "FeedDeadLetters",
            `Reader ${name} of the feed gave up ${describeCount(dead, "booking")}. See why: ops feed dead-letters ${name}`,
          ),
        ];
  if (pausedAt !== null)
    return [
      ...deadLetters,
      ofReader(
        name,
        "SubscriptionPaused",
        `The subscription ${name} is paused. See why: ops subscriptions show ${name}`,
      ),
    ];
  const failingMs = failingSince === null ? 0 : at.getTime() - failingSince.getTime();
  if (failingMs > maxFailingMs)
    return [
      ...deadLetters,
      ofReader(
        name,
        "SubscriptionFailing",
        `Everything that reader ${name} of the feed was given has failed for ${describeAge(failingMs)}. See "SubscriptionFailing" in docs/runbook.md.`,
      ),
    ];
  if (breakerOpenedAt === null) return [...deadLetters, ...describeLag(reader, at)];
  const openMs = at.getTime() - breakerOpenedAt.getTime();
  if (openMs < maxBreakerOpenMs) return deadLetters;
  return [
    ...deadLetters,
    ofReader(
      name,
      "FeedBreakerOpen",
      `Reader ${name} of the feed has taken nothing for ${describeAge(openMs)}. See "FeedBreakerOpen" in docs/runbook.md.`,
    ),
  ];
}

function describeLag({ name, lagChanges, lagMs, hasMissedChanges, seenAt }: FeedReader, at: Date): Concern[] {
  if (lagMs <= maxReaderLagMs) return [];
  const seen = `It was last seen ${describeAge(at.getTime() - seenAt.getTime())} ago.`;
  const remedy = hasMissedChanges
    ? `It has missed changes that were removed. Make it start over: ops feed reset ${name}`
    : 'See "FeedReaderBehind" in docs/runbook.md.';
  return [
    ofReader(
      name,
      "FeedReaderBehind",
      `Reader ${name} of the feed is ${describeCount(lagChanges, "change")} and ${describeAge(lagMs)} behind. ${seen} ${remedy}`,
    ),
  ];
}

function describeSilence(rhythm: Rhythm, { at, lastHeardOf, enabledPartners }: Status): Concern[] {
  const { partner, activeSlots, longestGapMs } = rhythm;
  const lastAt = lastHeardOf.get(partner);
  const isExpected = (enabledPartners?.has(partner) ?? true) && activeSlots >= minActiveSlots;
  if (lastAt === undefined || lastAt === null || !isExpected) return [];
  const silenceMs = at.getTime() - lastAt.getTime();
  if (silenceMs <= Math.max(silenceFactor * longestGapMs, minSilenceMs)) return [];
  return [
    ofPartner(
      partner,
      "PartnerSilent",
      `Partner ${partner} has been silent for ${describeAge(silenceMs)}; its longest pause of the week before was about ` +
        `${describeAge(longestGapMs)}. Ask the partner.`,
    ),
  ];
}
