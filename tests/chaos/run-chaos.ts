import { waitFor } from "@booking-events/harness/wait-for";
import { Erasures } from "./erase-guests.ts";
import { appNames, type Fault, maxClockErrorMs, type TargetName } from "./fault-plan.ts";
import { inventHistories, partners } from "./histories.ts";
import { injectFaults } from "./inject-faults.ts";
import { type Hold, lockRows } from "./lock-rows.ts";
import { type Strike, strikeMachines } from "./machine-faults.ts";
import { measureStrikes } from "./measure-strikes.ts";
import { EventLoad, type SendOptions } from "./post-events.ts";
import { createRandom } from "./random.ts";
import { type ChaosReport, noClockSteps } from "./report.ts";
import { Restores } from "./restore-bookings.ts";
import { Followers } from "./run-followers.ts";
import { type Run, type RunOptions, runOnSystem } from "./run-on-system.ts";
import { Readers } from "./run-readers.ts";
import { Stranger } from "./run-stranger.ts";
import { Subscribers } from "./run-subscribers.ts";
import { TestPartner } from "./run-test-partner.ts";
import type { System, SystemOptions } from "./start-system.ts";

export interface ChaosOptions
  extends RunOptions,
    Pick<SystemOptions, "redis" | "replicasToConfirm" | "postgres" | "delayMs"> {
  seed: number;
  faults: readonly Fault[];
  postMs: number;
  ratePerSecond: number;
  /** Of the faults of servers with replicas, only these, once each. Default: all, again and again. */
  machineFaults?: readonly string[];
  /** How long each of them lasts, at least and at the most. */
  machineFaultMs?: { least: number; most: number };
}

const sendOptions: SendOptions = {
  // An event that got no answer in this time must not take effect any more.
  answerTimeoutMs: 5_000,
  maxAttempts: 9,
  maxConnections: Number.POSITIVE_INFINITY,
  maxUnderWay: 5_000,
  mayBeLimited: false,
};
const locks = { leastMs: 200, mostMs: 6_000, leastPauseMs: 500, mostPauseMs: 3_000 };
/** Where servers have replicas, it is measured how long events are refused. Other outages must not count. */
const spared: readonly TargetName[] = ["ingest-2", "redis"];
/** Of events that were accepted. */
const servingS = 0.5;
const servingTimeoutMs = 15_000;
/** Servers are replaced meanwhile, are just about to be, or not yet. */
const machineFaultMs = { least: 1_000, most: 12_000 };
/**
 * A delivery comes back some 15 s after its worker was killed, and a retry soon after. Locks and delays go by Redis'
 * clock: if it is set back, they last longer.
 */
const standstillMs = 90_000 + 2 * maxClockErrorMs;

/** Posts random histories while faults hit the service, lets it come to rest, and checks what is there. */
export function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  return runOnSystem({ ...options, appNames, partners, isForFaults: true }, (run) => postAmidFaults(run, options));
}

async function postAmidFaults(run: Run, options: ChaosOptions): Promise<ChaosReport> {
  const { seed, postMs, ratePerSecond, say } = options;
  const { system, signal } = run;
  const clockIsSet = system.clocks !== undefined;
  const faults = options.faults.filter((fault) => isPossible(fault, system));
  if (!clockIsSet && options.redis === undefined) say(noClockSteps);
  const subscribers = new Subscribers(system.operate, system.pool, signal);
  await subscribers.start(seed);
  say(`Ready. Posting ${ratePerSecond} events/s for ${postMs / 1_000} s, with ${faults.length} faults.`);

  const load = startPosting(run, options);
  const onTrial = new TestPartner(system, { seed, forMs: postMs, sendOptions, signal });
  let lastFault = "none yet";
  run.tellProgress(() => `posted ${load.posts.length}  acknowledged ${load.acknowledged}  last fault: ${lastFault}`);
  const unlocking = new AbortController();
  const locking = lockRecentBookings(system, seed, AbortSignal.any([signal, unlocking.signal]));
  const followers = new Followers(system.databaseUrl, system.pool);
  await followers.start(createRandom(seed, "followers"), signal);
  const readers = new Readers(options.build.reader, system.databaseUrl, system.pool);
  await readers.start(seed, signal);
  const erasures = new Erasures(system.operate, createRandom(seed, "erasures"));
  erasures.start(load.posts, signal);
  const restores = new Restores(system.operate, createRandom(seed, "restores"));
  restores.start(load.posts, signal);
  const stranger = await Stranger.start(system);
  const onFault = ({ target, action }: Fault) => {
    lastFault = `${target} ${action}`;
  };
  const striking = strikeWhileServing(run, options, load);
  const injecting = injectFaults(faults, system, { signal, onFault });
  const [strikes] = await Promise.all([striking, load.done, onTrial.done, injecting]);
  options.signal.throwIfAborted();
  unlocking.abort();
  const rowLocks = (await locking).length;

  say("All faults are over and all partners have stopped.");
  await Promise.all([erasures.rest(), restores.rest(), subscribers.rest(), followers.rest()]);
  await run.drain(standstillMs);
  await judge(run, { followers, readers, erasures, restores, subscribers, stranger, onTrial });
  const report = await run.report(load.posts, { erased: erasures.names, restores: restores.all });
  return {
    ...report,
    seed,
    ratePerSecond,
    postedForMs: postMs,
    faults,
    rowLocks,
    testEvents: onTrial.acknowledged,
    erasures: { guests: erasures.guests, kills: erasures.kills },
    restores: { commands: restores.all.length, kills: restores.kills },
    readers: { stops: readers.stops, resets: readers.resets },
    deliveries: subscribers.tally,
    tlsConnections: countTlsConnections(run, options),
    clockIsSet,
    redis: options.redis ?? "one",
    postgres: options.postgres ?? "one",
    replicasToConfirm: options.replicasToConfirm ?? 0,
    machineFaults: measureStrikes(strikes, load.posts, run.seen.appliedAtMs, system.shards),
  };
}

/** Lets everybody end, and adds what is wrong to the run's violations. */
async function judge(
  { system, signal, seen, violations }: Run,
  all: {
    followers: Followers;
    readers: Readers;
    erasures: Erasures;
    restores: Restores;
    subscribers: Subscribers;
    stranger: Stranger;
    onTrial: TestPartner;
  },
): Promise<void> {
  const { followers, readers, erasures, restores, subscribers, stranger, onTrial } = all;
  violations.push(...(await restores.finish(signal)));
  violations.push(...(await erasures.finish(await readers.rest(), system.pool, signal)));
  violations.push(...(await readers.finish()));
  violations.push(...(await system.readLogs()).flatMap(findLostAttempts));
  violations.push(...(await followers.finish()).map((what) => ({ kind: "wrong feed" as const, what })));
  violations.push(...(await subscribers.finish(seen.erasedAtMs)));
  violations.push(...(await stranger.finish()));
  violations.push(...(await onTrial.finish()));
}

function isPossible({ target, action }: Fault, system: System): boolean {
  const isSpared = system.machineFaults.length > 0 && spared.includes(target);
  const needsClock = action === "set clock" || action === "wrong clock";
  return system.targets.has(target) && !(needsClock && system.clocks === undefined) && !isSpared;
}

function countOf({ postMs, ratePerSecond }: ChaosOptions): number {
  return Math.floor((postMs / 1_000) * ratePerSecond);
}

function startPosting({ system, signal }: Run, options: ChaosOptions): EventLoad {
  const histories = inventHistories(createRandom(options.seed, "histories"));
  return new EventLoad({
    next: () => ({ ...histories.next().value, attempts: [] }),
    perSecond: options.ratePerSecond,
    count: countOf(options),
    sendOptions,
    signal,
    ingestUrls: system.entrance.ingestUrls,
    secretOf: system.secretOf,
  });
}

function lockRecentBookings({ pool }: System, seed: number, signal: AbortSignal): Promise<Hold[]> {
  const random = createRandom(seed, "locks");
  return lockRows({
    pool,
    which: "order by updated_at desc limit 1",
    holdMs: () => random.between(locks.leastMs, locks.mostMs),
    pauseMs: () => random.between(locks.leastPauseMs, locks.mostPauseMs),
    signal,
  });
}

function strikeWhileServing({ system, signal }: Run, options: ChaosOptions, load: EventLoad): Promise<Strike[]> {
  const { seed, postMs, ratePerSecond, say } = options;
  return strikeMachines({
    faults: system.machineFaults,
    names: options.machineFaults,
    random: createRandom(seed, "machines"),
    lastMs: options.machineFaultMs ?? machineFaultMs,
    forMs: postMs,
    async untilServing() {
      const before = load.acknowledged;
      const isServing = () =>
        load.acknowledged - before >= ratePerSecond * servingS || load.posts.length === countOf(options);
      // A later fault may say why it is not.
      await waitFor(isServing, { timeoutMs: servingTimeoutMs }).catch(() => {});
    },
    signal,
    onFault: (name) => say(`        ${name}`),
  });
}

/** @throws if the workers did not use TLS, although they should */
function countTlsConnections({ seen }: Run, { postgres }: ChaosOptions): number {
  const { tls, plain } = seen.workerConnections;
  if (postgres === undefined && (tls.size === 0 || plain.size > 0))
    throw new Error(`The workers had ${tls.size} connections over TLS, ${plain.size} others: this run proves nothing.`);
  return tls.size;
}

/**
 * A row that is locked from outside is no outage, and may cost an attempt: for an event of the locked booking after
 * five waits of a second (55P03, lock_not_available), and for one that waited too long beside it (`HeldUp`). If
 * PostgreSQL's clock jumps ahead while it waits for the lock, the time is up at once (57014, query_canceled).
 */
const costOfLocks = /"code":"(?:HeldUp|55P03)"|"code":"57014".* lockBookings /;

/** A worker logs it when an event loses an attempt. */
function findLostAttempts(log: string) {
  return log
    .split("\n")
    .filter((line) => line.includes('"msg":"attempt failed"') && !costOfLocks.test(line))
    .map((what) => ({ kind: "attempt lost" as const, what }));
}
