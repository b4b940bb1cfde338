import { copyFile } from "node:fs/promises";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@booking-events/harness/wait-for";
import { ask, compareLists, leaveBodiesUnfinished, sendSlowLists, sendSmallChunks } from "./abuse-connections.ts";
import { floodWithRefusals } from "./flood-refusals.ts";
import { watchApplied } from "./follow-database.ts";
import { leaveStreamsUnread } from "./leave-streams-unread.ts";
import { lockRows } from "./lock-rows.ts";
import { judgeNeighbours, type NeighbourReport } from "./neighbour-report.ts";
import { inventHot, inventLocked, inventOrdinary, inventWorst, lockedReference } from "./neighbour-traffic.ts";
import { EventLoad, type Outgoing, type SendOptions } from "./post-events.ts";
import { type Run, type RunOptions, runOnSystem } from "./run-on-system.ts";
import type { System } from "./start-system.ts";
import { listBackends, watchMemory } from "./watch-memory.ts";

export interface NeighbourOptions extends RunOptions {
  /** How long the well-behaved partners are alone at first, for comparison. */
  quietMs: number;
  loudMs: number;
  /** What each of the worst two partners sends. Default: as much as its limit allows. */
  neighbourPerSecond?: number;
  /** How many connections send what is refused. Default: 50. */
  strangers?: number;
  /** Where Caddy is. Undefined: everything reaches the processes directly. */
  proxyProgram: string | undefined;
}

const appNames = ["ingest-1", "ingest-2", "worker-1", "worker-2", "lookup-1"] as const;
/** In MB. V8 ends the process rather than grow beyond it. The report limits what a process takes in all. */
const heapLimits = { ingest: "--max-old-space-size=384", worker: "--max-old-space-size=576" };

const wellBehaved: readonly string[] = ["acme", "globe", "zenith", "orbit"];
/** The default of `ops partners add`. */
const rateLimit = { perSecond: 200, burst: 400 };
const ordinaryPerSecond = 10;
const slowListers: readonly string[] = ["slow-1", "slow-2"];
const connectionsWithChunks = 8;
/** After it comes the secret. */
const known = "/booking-event/create/";
/** Caddy looks at each process once a second. */
const answersInARow = 6;
const defaultStrangers = 50;
/** A second attempt would hide what a neighbour does to the first. */
const sendOptions: SendOptions = {
  answerTimeoutMs: 10_000,
  maxAttempts: 1,
  maxConnections: 64,
  maxUnderWay: 1_000,
  mayBeLimited: true,
};
const lockMs = 8_000;
const unlockedMs = 2_000;
/** Nobody locks the row in the rest of the loud time. A longer lock would put off the retries of its events further. */
const lockedShare = 0.75;
/** Beyond the sixth delay of the retry policy, which is 4 min 3 s. */
const standstillMs = 300_000;

/**
 * Well-behaved partners post, first alone, then beside a partner that sends the worst payloads, one that sends
 * everything about one booking, one whose booking's row somebody keeps locked, one that finishes no body, two that send
 * lists slowly, one whose secret was revoked and one on an unknown path who send chunks of one byte, a flood of refused
 * requests, and strangers that want to open HTTP/2 connections and read nothing.
 */
export function runBadNeighbour(options: NeighbourOptions): Promise<NeighbourReport> {
  const { ingest, worker } = options.build;
  const limited = { ingest: [heapLimits.ingest, ...ingest], worker: [heapLimits.worker, ...worker] };
  const build = { ...options.build, ...limited };
  const partners = [...wellBehaved, "worst", "hot", "locked", "unfinished", "revoked", "lost", ...slowListers];
  const system = { build, appNames, partners, rateLimit };
  return runOnSystem({ ...options, ...system }, (run) => postBesideNeighbours(run, options));
}

async function postBesideNeighbours(run: Run, options: NeighbourOptions): Promise<NeighbourReport> {
  const { quietMs, loudMs, say } = options;
  const { pool } = run.system;
  const stopping = new AbortController();
  const signal = AbortSignal.any([run.signal, stopping.signal]);
  const applied = watchApplied(pool, run.signal);
  const peakMemory = watchMemory(() => listProcesses(run.system), run.signal);
  const start = (invent: Invent, partner: string, perSecond: number) =>
    startPosting(run, { invent, partner, perSecond, signal, applied });
  await untilReachable(run.system);
  await revokeSecret(run.system, signal);

  say(`Ready. ${wellBehaved.length} well-behaved partners alone for ${quietMs / 1_000} s.`);
  const ordinary = wellBehaved.map((partner) => start(inventOrdinary, partner, ordinaryPerSecond));
  run.tellProgress(() => {
    const acknowledged = ordinary.reduce((sum, load) => sum + load.acknowledged, 0);
    return `of well-behaved partners: acknowledged ${acknowledged}, applied ${applied.seenAtMs.size}`;
  });
  await sleep(quietMs, undefined, { signal });

  say(`Now with the neighbours, for ${loudMs / 1_000} s.`);
  const loudFromMs = performance.now();
  const ownDelay = monitorEventLoopDelay();
  ownDelay.enable();
  const { neighbours, statuses, locking } = startNeighbours(run, options, start, signal);
  await sleep(loudMs, undefined, { signal });
  stopping.abort();
  const loads = [...ordinary, ...neighbours];
  await Promise.all(loads.map(({ done }) => done));
  ownDelay.disable();
  const holds = await locking;

  say("All is quiet again.");
  const quietAgainAtMs = performance.now();
  await run.drain(standstillMs);
  const drainedInMs = Math.round(performance.now() - quietAgainAtMs);
  await applied.finish();
  // Before the tables are read: that takes a backend memory which the service does not need.
  const memory = peakMemory();
  const posts = loads.flatMap((load) => load.posts);
  const report = await run.report(posts);
  const appliedAtMs = applied.seenAtMs;
  const judged = judgeNeighbours({ posts, wellBehaved, loudFromMs, appliedAtMs, holds, statuses, memory });
  return {
    ...report,
    ...judged,
    passed: report.passed && judged.promises.every(({ isKept }) => isKept),
    scenario: "bad-neighbour",
    isBehindProxy: options.proxyProgram !== undefined,
    quietMs,
    loudMs,
    drainedInMs,
    ownDelayMs: Math.round(ownDelay.percentile(99) / 1e6),
    memory,
  };
}

/** Through the proxy, each process. */
async function untilReachable({ entrance: { dialIngest, dialLookup } }: System): Promise<void> {
  await waitFor(async () => {
    for (let count = 0; count < answersInARow; count += 1) {
      const answers = [await ask("/x", dialIngest), await ask("/booking-event/receipt/x/x/x", dialLookup)];
      if (answers.join() !== "404,404") throw new Error(`ingest and lookup answer ${answers}`);
    }
  });
}

/** As an operator does. Then an old partners file brings the secret back, which must be refused nevertheless. */
async function revokeSecret({ operate, partnersFile, secretOf, entrance }: System, signal: AbortSignal): Promise<void> {
  const old = `${partnersFile}.old`;
  await copyFile(partnersFile, old);
  const { exitCode, printed } = await operate(["partners", "revoke", "revoked", "s1", "--yes"], signal);
  if (exitCode !== 0) throw new Error(`The secret could not be revoked: ${printed}`);
  const isRefused = async () => (await ask(`${known}${secretOf("revoked")}`, entrance.dialIngest)) === "403";
  await waitFor(isRefused);
  await copyFile(old, partnersFile);
}

type Invent = (partner: string, index: number) => Outgoing;

function startPosting(
  { system }: Run,
  options: {
    invent: Invent;
    partner: string;
    perSecond: number;
    signal: AbortSignal;
    applied: ReturnType<typeof watchApplied>;
  },
): EventLoad {
  const { invent, partner, perSecond, signal, applied } = options;
  return new EventLoad({
    next: (index) => invent(partner, index),
    perSecond,
    sendOptions,
    ...system.entrance,
    secretOf: system.secretOf,
    signal,
    onAcknowledged(eventId) {
      if (wellBehaved.includes(partner)) applied.expect(eventId);
    },
  });
}

function startNeighbours(
  { system }: Run,
  { loudMs, neighbourPerSecond = rateLimit.perSecond, strangers = defaultStrangers }: NeighbourOptions,
  start: (invent: Invent, partner: string, perSecond: number) => EventLoad,
  signal: AbortSignal,
) {
  const { secretOf, entrance } = system;
  const ingest = { dial: entrance.dialIngest, signal };
  const lookup = { dial: entrance.dialLookup, signal };
  return {
    neighbours: [
      start(inventWorst, "worst", neighbourPerSecond),
      start(inventHot, "hot", neighbourPerSecond),
      start(inventLocked, "locked", ordinaryPerSecond),
    ],
    statuses: {
      strangers: floodWithRefusals(entrance.dialIngest, strangers, signal),
      "revoked secret": sendSmallChunks(`${known}${secretOf("revoked")}`, connectionsWithChunks, ingest),
      "unknown path": sendSmallChunks(`/booking-event/${secretOf("lost")}`, connectionsWithChunks, ingest),
      unfinished: leaveBodiesUnfinished(`${known}${secretOf("unfinished")}`, neighbourPerSecond, ingest),
      "slow lists": sendSlowLists(slowListers.map(secretOf), lookup),
      lists: compareLists(secretOf("acme"), lookup),
      "HTTP/2": entrance.proxy === undefined ? {} : leaveStreamsUnread(entrance.proxy, signal),
    },
    locking: lockRows({
      pool: system.pool,
      which: `where partner = 'locked' and reference = '${lockedReference}'`,
      holdMs: () => lockMs,
      pauseMs: () => unlockedMs,
      signal: AbortSignal.any([signal, AbortSignal.timeout(loudMs * lockedShare)]),
    }),
  };
}

function listProcesses({ apps, entrance, redisPid, postgres }: System): [name: string, pid: number][] {
  return [
    ...apps.map(({ name, pid = 0 }): [string, number] => [name, pid]),
    ...(entrance.proxy === undefined ? [] : [["caddy", entrance.proxy.pid] satisfies [string, number]]),
    ["redis", redisPid],
    ...listBackends(postgres.pid).map((pid): [string, number] => ["postgres backend", pid]),
  ];
}
