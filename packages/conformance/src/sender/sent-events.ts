import type { EventKind } from "@booking-events/schema";

/** A request of the sender with one event. Times are those of `performance.now()`. */
export interface Attempt {
  arrivedAtMs: number;
  /** When the answer was sent or the connection closed; undefined if neither has happened. */
  endedAtMs?: number;
  /** Whether its answer decided what becomes of the event: 200, or a refusal for good. */
  isDecided?: boolean;
  /** Undefined if the sender sent none. */
  key: string | undefined;
  type: string | undefined;
  body: Buffer;
  /** True if the sender would have waited for an answer longer than this program. */
  isWaitTooLong?: boolean;
}

/** An event with all requests that tried to send it. */
export interface AttemptedEvent {
  kind: EventKind;
  booking: string;
  /** Of the first attempt. */
  content: string;
  attempts: [Attempt, ...Attempt[]];
}

/** The events that a sender has sent, in the order of their first attempts. */
export class SentEvents {
  readonly all: AttemptedEvent[] = [];

  /**
   * Adds a request to the event that it belongs to, which may be a new one.
   *
   * Neither key nor content alone tells which event a request belongs to, because some senders change one of them with
   * each attempt. So a request with the operation and booking of the latest event is a new event only if its content
   * differs, and either the latest event is decided or the key differs, too.
   */
  add(sent: Pick<AttemptedEvent, "kind" | "booking" | "content">, attempt: Attempt): AttemptedEvent {
    const known = this.#find(sent, attempt);
    if (known !== undefined) {
      known.attempts.push(attempt);
      return known;
    }
    const event: AttemptedEvent = { ...sent, attempts: [attempt] };
    this.all.push(event);
    return event;
  }

  #find({ kind, booking, content }: Omit<AttemptedEvent, "attempts">, { key }: Attempt): AttemptedEvent | undefined {
    const candidates = this.all.filter((event) => event.kind === kind && event.booking === booking);
    const latest = candidates.at(-1);
    if (latest === undefined || latest.content === content) return latest;
    const retried = candidates.findLast((event) => event.content === content && !isDecided(event));
    if (retried !== undefined) return retried;
    const [first] = latest.attempts;
    const hasOtherKey = key !== undefined && first.key !== undefined && key !== first.key;
    return isDecided(latest) || hasOtherKey ? undefined : latest;
  }
}

function isDecided({ attempts }: AttemptedEvent): boolean {
  return attempts.some((attempt) => attempt.isDecided);
}
