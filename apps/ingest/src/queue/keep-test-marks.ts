import type { Producer, Records } from "@booking-events/queue";
import { type Logger, withDeadline } from "@booking-events/runtime";

type Enqueue = Producer["enqueue"];

/**
 * An event waits for its partner's mark before it is queued, within the 2 s in which partners get an answer in an outage.
 * A mark that Redis gives later is there for the next event.
 */
const longestWaitMs = 400;

/** The partners file marks the partner otherwise than when it sent its first event. */
class TestMarkDiffers extends Error {
  override name = "TestMarkDiffers";
}

/**
 * Lets an event into the queue only if its partner is a test partner exactly if it was one with its first event. Somebody
 * who edits the partners file by hand could otherwise send real events to where they are removed after seven days, or
 * leave a booking in two places. Redis keeps the mark for good. Such events get 503, so their sender keeps them until the file is
 * corrected.
 */
export class TestMarks {
  readonly #claim: Records["claimTestMark"];
  readonly #isTest: (partner: string) => boolean;
  readonly #logger: Logger;
  /** By the partner's id. A mark never changes, so each is read once. */
  readonly #marks = new Map<string, Promise<boolean>>();
  /** By the partner's id: what the file said when an event was refused. */
  readonly #differing = new Map<string, boolean>();

  /** @param options.isTest whether the partners file marks the partner as a test partner now */
  constructor(options: { claim: Records["claimTestMark"]; isTest: (partner: string) => boolean; logger: Logger }) {
    const { claim, isTest, logger } = options;
    this.#claim = claim;
    this.#isTest = isTest;
    this.#logger = logger;
  }

  guard(enqueue: Enqueue): Enqueue {
    return async (event) => {
      const isTest = event.test === true;
      const mark = await withDeadline(this.#markOf(event.partner, isTest), longestWaitMs);
      if (mark !== isTest) throw this.#refuse(event.partner, isTest);
      this.#differing.delete(event.partner);
      return enqueue(event);
    };
  }

  /** For an operator. */
  warnings(): string[] {
    const differing = [...this.#differing].filter(([partner, isTest]) => this.#isTest(partner) === isTest);
    if (differing.length === 0) return [];
    return [
      `The partners file has changed "test" of partners that had sent events: ${differing.map(([id]) => id).join(", ")}. Their ` +
        "events get 503. Change it back, and add another id for the other use: ops partners add.",
    ];
  }

  #markOf(partner: string, isTest: boolean): Promise<boolean> {
    let mark = this.#marks.get(partner);
    if (mark === undefined) {
      mark = this.#claim(partner, isTest);
      this.#marks.set(partner, mark);
      mark.catch(() => this.#marks.delete(partner));
    }
    return mark;
  }

  #refuse(partner: string, isTest: boolean): Error {
    if (!this.#differing.has(partner))
      this.#logger.error(
        { partner, test: isTest },
        'the partners file has changed "test" of a partner that had sent events: its events get 503',
      );
    this.#differing.set(partner, isTest);
    return new TestMarkDiffers("The partner's mark differs from that of its first event.");
  }
}
