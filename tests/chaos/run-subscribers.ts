import { setTimeout as sleep } from "node:timers/promises";
import { repeat } from "@booking-events/runtime";
import type pg from "pg";
import type { Violation } from "./check.ts";
import { checkDeliveries, type LeaseSeen, type Received } from "./check-deliveries.ts";
import { createRandom } from "./random.ts";
import { readDatabase } from "./read-database.ts";
import type { Operate } from "./run-ops.ts";
import { ChaoticSubscriber } from "./subscriber.ts";

interface Wish {
  name: string;
  mode: "latest" | "every";
  payload: "thin" | "full";
  signature: "hmac" | "ed25519";
  partner: string | null;
  /** In the end it gets everything again. */
  lies: boolean;
}

const wishes: readonly Wish[] = [
  { name: "every-full", mode: "every", payload: "full", signature: "hmac", partner: null, lies: true },
  { name: "latest-thin", mode: "latest", payload: "thin", signature: "ed25519", partner: null, lies: false },
  { name: "latest-full-globe", mode: "latest", payload: "full", signature: "hmac", partner: "globe", lies: false },
  { name: "every-thin-acme", mode: "every", payload: "thin", signature: "hmac", partner: "acme", lies: false },
];

const lookIntervalMs = 250;
const operatorTimeoutMs = 60_000;
/** After an outage, a process tries again after up to 10 s, and a booking that has failed a few times after a minute. */
const noProgressMs = 90_000;
/** Before everything, whatever clock was wrong. */
const longAgo = "2001-01-01T00:00:00Z";

interface Subscription extends Wish {
  server: ChaoticSubscriber;
  leases: LeaseSeen[];
  /** What was last seen of its reader, and when that look began. */
  last: { row: string; atMs: number };
  /** Requests before this one came before the replay. */
  replayedAt: number;
  /** Requests before this one have been looked at. Of them, these are not known to have been recorded. */
  seen: number;
  unrecorded: Set<Received>;
}

/** Subscribers that write down what they get, and are not always well. */
export class Subscribers {
  readonly #operate: Operate;
  readonly #pool: pg.Pool;
  readonly #signal: AbortSignal;
  readonly #stopping = new AbortController();
  readonly #subscriptions: Subscription[] = [];
  readonly #violations: Violation[] = [];
  #looking: Promise<void> | undefined;

  constructor(operate: Operate, pool: pg.Pool, signal: AbortSignal) {
    this.#operate = operate;
    this.#pool = pool;
    this.#signal = signal;
  }

  get tally() {
    const all = this.#subscriptions.flatMap(({ server }) => server.received);
    return {
      requests: all.length,
      accepted: all.filter(({ answer }) => answer !== "refused").length,
      forgotten: all.filter(({ answer }) => answer === "forgotten").length,
      erased: all.filter(({ change }) => change === "erased").length,
      /** How often the lease of a subscription changed hands. */
      takeovers: this.#subscriptions.reduce((sum, { leases }) => sum + leases.length - 1, 0),
    };
  }

  /** Adds the subscriptions. Nothing must have been posted before. */
  async start(seed: number): Promise<void> {
    this.#subscriptions.push(...(await Promise.all(wishes.map((wish) => this.#subscribe(wish, seed)))));
    for (const { server } of this.#subscriptions) server.begin(this.#signal);
    this.#signal.addEventListener("abort", () => void this.#close(), { once: true });
    const look = () => this.#look().catch(() => {});
    this.#looking = repeat(look, lookIntervalMs, AbortSignal.any([this.#signal, this.#stopping.signal]));
  }

  /** From now on, all subscribers are well. */
  async rest(): Promise<void> {
    await Promise.all(this.#subscriptions.map(({ server }) => server.rest()));
  }

  /**
   * Waits until everything has been delivered, replays what subscribers have lost, and closes them.
   *
   * @param erasedAtMs see `DeliveryEvidence`
   * @returns what is wrong with the requests that they got
   */
  async finish(erasedAtMs: ReadonlyMap<string, number>): Promise<Violation[]> {
    await this.rest();
    await this.#comeToTheEnd();
    for (const subscription of this.#subscriptions.filter(({ lies }) => lies)) await this.#replay(subscription);
    await this.#comeToTheEnd();
    this.#stopping.abort();
    await this.#looking;
    await this.#look();
    await this.#close();
    const subscriptions = this.#subscriptions.map(({ server: { received }, replayedAt, ...one }) => ({
      ...one,
      epochs: [received.slice(0, replayedAt), received.slice(replayedAt)],
    }));
    const wrong = checkDeliveries({ subscriptions, database: await readDatabase(this.#pool), erasedAtMs });
    const strays = this.#subscriptions.filter(({ server }) => server.strays > 0);
    for (const { name } of strays) this.#report(`${name}: a redirect was followed`);
    return [...this.#violations, ...wrong];
  }

  async #subscribe(wish: Wish, seed: number): Promise<Subscription> {
    const { name, mode, payload, signature, partner, lies } = wish;
    const server = await ChaoticSubscriber.start({ random: createRandom(seed, `subscriber ${name}`), lies });
    const how = ["--mode", mode, "--payload", payload, "--signature", signature];
    const filter = partner === null ? [] : ["--partner", partner];
    const printed = await this.#run("add", name, "--url", server.url, ...how, ...filter, "--by", "chaos", "--json");
    const { secret, publicKey } = JSON.parse(printed);
    server.key = secret ?? publicKey;
    return { ...wish, server, leases: [], last: { row: "", atMs: 0 }, replayedAt: 0, unrecorded: new Set(), seen: 0 };
  }

  async #replay(subscription: Subscription): Promise<void> {
    subscription.replayedAt = subscription.server.received.length;
    subscription.unrecorded.clear();
    await this.#run("replay", subscription.name, "--since", longAgo, "--yes");
  }

  async #run(...args: string[]): Promise<string> {
    const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(operatorTimeoutMs)]);
    const { exitCode, printed } = await this.#operate(["subscriptions", ...args], signal);
    this.#signal.throwIfAborted();
    if (exitCode !== 0) throw new Error(`ops subscriptions ${args.join(" ")} failed: ${printed}`);
    return printed;
  }

  #report(what: string): void {
    this.#violations.push({ kind: "wrong delivery", what });
  }

  async #comeToTheEnd(): Promise<void> {
    let place = "";
    let movedAtMs = performance.now();
    const isAtEnd = async () => {
      const { rows } = await this.#pool.query<{ place: string; isAtEnd: boolean }>(
        `select string_agg(concat_ws(' ', name, reader.last_id, waiting.count), ' ' order by name) as place,
           bool_and(reader.last_id is not distinct from position.last_id and waiting.count = 0) as "isAtEnd"
         from subscriptions left join feed_readers as reader using (name) cross join feed_position as position
         cross join lateral (
           select count(*) from feed_deliveries where reader = name and change_id is not null
         ) as waiting`,
      );
      const [row] = rows;
      if (row?.place !== place) movedAtMs = performance.now();
      place = row?.place ?? "";
      return row?.isAtEnd === true;
    };
    while (!(await isAtEnd())) {
      this.#signal.throwIfAborted();
      if (performance.now() > movedAtMs + noProgressMs) return this.#report(`deliveries no longer go on: ${place}`);
      await sleep(lookIntervalMs);
    }
  }

  /** Notes who has the leases, and what has been recorded. */
  async #look(): Promise<void> {
    const startedAtMs = Date.now();
    const { rows } = await this.#pool.query<ReaderRow>(
      `select name, active_id as token, last_id::float8 as "lastId",
         (extract(epoch from seen_at) * 1000)::float8 as "seenAtMs", array(
         select json_build_object('bookingId', booking_id, 'doneId', done_id, 'isWaiting', change_id is not null)
         from feed_deliveries where reader = name
       ) as deliveries
       from feed_readers join subscriptions using (name)`,
    );
    const endedAtMs = Date.now();
    for (const subscription of this.#subscriptions) {
      const row = rows.find(({ name }) => name === subscription.name);
      if (row === undefined) continue;
      noteLease(subscription, row, { startedAtMs, endedAtMs });
      noteRecorded(subscription, row, endedAtMs);
    }
  }

  async #close(): Promise<void> {
    await Promise.all(this.#subscriptions.map(({ server }) => server.close()));
  }
}

interface ReaderRow {
  name: string;
  token: string | null;
  lastId: number | null;
  /** When its process last renewed its lease or recorded something, by PostgreSQL's clock. */
  seenAtMs: number;
  deliveries: { bookingId: string; doneId: number | null; isWaiting: boolean }[];
}

function noteLease(
  { leases, last }: Subscription,
  { token, ...row }: ReaderRow,
  look: { startedAtMs: number; endedAtMs: number },
): void {
  const lease = leases.at(-1);
  const isUsed = JSON.stringify(row) !== last.row;
  // It was used since the look before. But while PostgreSQL's standby is away, a commit is seen long after its process
  // has asked for it, and may have ended.
  const usedAtMs = Math.min(last.atMs, row.seenAtMs);
  if (lease?.token !== token) leases.push({ token, fromMs: look.endedAtMs, usedAtMs });
  else if (isUsed) lease.usedAtMs = usedAtMs;
  last.row = JSON.stringify(row);
  last.atMs = look.startedAtMs;
}

function noteRecorded(subscription: Subscription, { lastId, deliveries }: ReaderRow, atMs: number): void {
  const { unrecorded, server } = subscription;
  for (const received of server.received.slice(subscription.seen)) unrecorded.add(received);
  subscription.seen = server.received.length;
  const rows = new Map(deliveries.map((row) => [row.bookingId, row]));
  for (const received of unrecorded) {
    const row = rows.get(received.bookingId);
    const isPast = (lastId ?? 0) >= received.changeId && row?.isWaiting !== true;
    const isDone = isPast || (row?.doneId ?? 0) >= received.changeId;
    if (received.answer !== "refused" && isDone) received.recordedAtMs = atMs;
    const isOver = received.answer === "refused" && received.endedAtMs < atMs - lookIntervalMs;
    if (isOver || received.recordedAtMs !== null) unrecorded.delete(received);
  }
}
