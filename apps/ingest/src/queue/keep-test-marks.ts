import type { Producer, Records } from "@booking-events/queue";
import type { Logger } from "@booking-events/runtime";

type Enqueue = Producer["enqueue"];

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
  readonly #logger: Logger;
  /** By the partner's id. A mark never changes, so each is read once. */
  readonly #marks = new Map<string, Promise<boolean>>();
  readonly #differing = new Set<string>();

  constructor(claim: Records["claimTestMark"], logger: Logger) {
    this.#claim = claim;
    this.#logger = logger;
  }

  guard(enqueue: Enqueue): Enqueue {
    return async (event, subject) => {
      const isTest = event.test === true;
      if ((await this.#markOf(event.partner, isTest)) !== isTest) throw this.#refuse(event.partner, isTest);
      this.#differing.delete(event.partner);
      return enqueue(event, subject);
    };
  }

  /** For an operator. */
  warnings(): string[] {
    if (this.#differing.size === 0) return [];
    return [
      `The partners file has changed "test" of partners that had sent events: ${[...this.#differing].join(", ")}. Their ` +
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
    this.#differing.add(partner);
    return new TestMarkDiffers("The partner's mark differs from that of its first event.");
  }
}
