import type { Partner } from "@booking-events/partners";
import type { QueueReader, Records, TokenBuckets, UsedLimits, WaitingEvents } from "@booking-events/queue";
import { createSlots, DeadlineExceeded, withDeadline } from "@booking-events/runtime";
import type { PartnerActivity } from "@booking-events/store";
import type { PartnerData } from "../partner-data.ts";
import type { ActivityWindow } from "./activity-window.ts";

export interface ActivitySources {
  /** Each throws if its server cannot be read. */
  data: Pick<PartnerData, "readActivity">;
  readRecords: Records["readOfPartner"];
  findWaiting: QueueReader["findWaiting"];
  look: TokenBuckets["look"];
}

/** What is known of a partner's events, from one look. */
export interface KnownActivity extends PartnerActivity, Awaited<ReturnType<Records["readOfPartner"]>> {
  at: Date;
  waiting: WaitingEvents;
  limits: UsedLimits;
}

const limits = {
  /** What was found is answered for this long, to whoever asks. */
  keptMs: 5_000,
  /** Looks at a time, of all partners. Each takes a connection to PostgreSQL, of which receipts need some, too. */
  atOnce: 2,
  /** Including the wait for other partners' looks. */
  deadlineMs: 1_500,
};

/**
 * Reads what partners have sent. A flood of questions costs what one of them does: a partner's questions share a look,
 * as long as it is fresh, and the looks of all partners take turns.
 */
export class ActivityReader {
  readonly #sources: ActivitySources;
  readonly #inSlot = createSlots(limits.atOnce);
  readonly #looks = new Map<string, Promise<KnownActivity>>();
  #waiting: ReturnType<QueueReader["findWaiting"]> | undefined;

  constructor(sources: ActivitySources) {
    this.#sources = sources;
  }

  /** @throws if Redis or PostgreSQL does not answer in time. Half of an answer would be a wrong one */
  read(partner: Partner, window: ActivityWindow): Promise<KnownActivity> {
    // Some of what is found is in the order of the secrets, which may change.
    const secretIds = partner.secrets.map(({ id }) => id).join();
    const key = `${partner.id} ${secretIds} ${window.hours.length} ${window.hours[0]?.from.toISOString()}`;
    const known = this.#looks.get(key);
    if (known !== undefined) return known;
    const untilMs = performance.now() + limits.deadlineMs;
    const looking = withDeadline(
      this.#inSlot(async () => {
        // Nobody waits for it any more. In an outage, others would wait for all that were given up.
        if (performance.now() > untilMs) throw new DeadlineExceeded();
        return look(this.#sources, partner, window, () => this.#readWaiting());
      }),
      limits.deadlineMs,
    );
    this.#looks.set(key, looking);
    forget(looking, () => this.#looks.delete(key));
    return looking;
  }

  /** One look at the queue is for all partners. */
  #readWaiting(): ReturnType<QueueReader["findWaiting"]> {
    if (this.#waiting === undefined) {
      this.#waiting = this.#sources.findWaiting();
      forget(this.#waiting, () => {
        this.#waiting = undefined;
      });
    }
    return this.#waiting;
  }
}

/** A failure is forgotten at once. */
function forget(looking: Promise<unknown>, drop: () => void): void {
  looking.then(() => setTimeout(drop, limits.keptMs).unref(), drop);
}

async function look(
  { data, readRecords, look: lookAtLimits }: ActivitySources,
  partner: Partner,
  window: ActivityWindow,
  readWaiting: QueueReader["findWaiting"],
): Promise<KnownActivity> {
  const at = new Date();
  const secretIds = partner.secrets.map(({ id }) => id);
  const [activity, records, waiting, limits] = await Promise.all([
    data.readActivity(partner.id, window.hours),
    readRecords({ partner: partner.id, secretIds, days: window.days }),
    readWaiting(),
    lookAtLimits(partner.id, partner.rateLimit),
  ]);
  return { at, ...activity, ...records, waiting, limits };
}
