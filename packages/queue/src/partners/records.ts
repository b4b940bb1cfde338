import { withDeadline } from "@booking-events/runtime";
import type { Redis } from "ioredis";
import { connectFailingFast, type QueueLocation } from "../redis/connect-to-redis.ts";
import { companionPrefix } from "../shards/shards.ts";
import { type AnswerCount, addAnswerCounts, readAnswerCounts } from "./answer-counts.ts";
import { addFieldCounts, type Counted, type FieldCount, readFieldCounts } from "./field-counts.ts";
import { readLastUsesOf, type SecretUse, writeLastUses } from "./last-use.ts";
import { type RecordedRefusal, readRefusalsOf, writeRefusals } from "./refusals.ts";
import { type Revocation, readRevocations, writeRevocations } from "./revocations.ts";
import { claimTestMark } from "./test-marks.ts";

const writeDeadlineMs = 1_500;

export type Records = ReturnType<typeof openRecords>;

/** Leaves time for PostgreSQL within the 2 s in which partners get an answer in an outage. */
const readDeadlineMs = 800;

/**
 * Writes what a process records beside the queue, and reads which secrets were revoked.
 *
 * The connection is one of its own, because another node of a cluster may store the records. Nothing waits for it when a
 * process starts, so what is written before it is ready waits for it.
 *
 * Each method throws if Redis does not answer in time. Some of the entries may have been written.
 */
export function openRecords(options: QueueLocation & { connectionName: string; onError: (error: Error) => void }) {
  const { prefix, connectionName, onError } = options;
  const location = { ...options, prefix: companionPrefix(prefix, "records") };
  const redis = connectFailingFast(location, onError, { connectionName, enableOfflineQueue: true });
  return {
    writeLastUses: (uses: SecretUse[]) => withDeadline(writeLastUses(redis, prefix, uses), writeDeadlineMs),
    writeRefusals: (refusals: RecordedRefusal[]) =>
      withDeadline(writeRefusals(redis, prefix, refusals), writeDeadlineMs),
    addFieldCounts: (counted: Counted, counts: FieldCount[]) =>
      withDeadline(addFieldCounts(redis, prefix, counted, counts), writeDeadlineMs),
    addAnswerCounts: (counts: AnswerCount[]) => withDeadline(addAnswerCounts(redis, prefix, counts), writeDeadlineMs),
    readOfPartner: (wanted: WantedRecords) => withDeadline(readOfPartner(redis, prefix, wanted), readDeadlineMs),
    writeRevocations: (revocations: Revocation[]) =>
      withDeadline(writeRevocations(redis, prefix, revocations), writeDeadlineMs),
    claimTestMark: (partner: string, isTest: boolean) =>
      withDeadline(claimTestMark(redis, prefix, partner, isTest), writeDeadlineMs),
    readRevocations: () => withDeadline(readRevocations(redis, prefix), writeDeadlineMs),
    close: () => redis.disconnect(),
  };
}

interface WantedRecords {
  partner: string;
  secretIds: readonly string[];
  /** In UTC, newest first. */
  days: readonly string[];
}

/** What is recorded of a partner: its newest refusals, counts of some days, and when its secrets were last used. */
async function readOfPartner(redis: Redis, prefix: string, wanted: WantedRecords) {
  const { partner, days } = wanted;
  const of = { partners: [partner], days };
  const [refusals, violations, warnings, answers, lastUses] = await Promise.all([
    readRefusalsOf(redis, prefix, partner),
    readFieldCounts(redis, prefix, "violations", of),
    readFieldCounts(redis, prefix, "warnings", of),
    readAnswerCounts(redis, prefix, wanted),
    readLastUsesOf(redis, prefix, wanted),
  ]);
  return { refusals, violations, warnings, answers, lastUses };
}
