import { PullRefused, tooManyRequests } from "./pull-answers.ts";

/** Of one subscription, most of which wait for changes. */
const maxRequests = 10;

/** Lets each subscription have a few requests under way, of which one at a time reads. */
export class RequestLimiter {
  readonly #lanes = new Map<string, { count: number; reading: Promise<unknown> }>();

  /** @throws PullRefused */
  async admit<Result>(name: string, work: (read: Read) => Promise<Result>): Promise<Result> {
    const lane = this.#lanes.get(name) ?? { count: 0, reading: Promise.resolve() };
    if (lane.count >= maxRequests) throw new PullRefused(tooManyRequests);
    lane.count += 1;
    this.#lanes.set(name, lane);
    try {
      return await work((reading) => {
        const read = lane.reading.then(reading);
        lane.reading = read.catch(() => {});
        return read;
      });
    } finally {
      lane.count -= 1;
      if (lane.count === 0) this.#lanes.delete(name);
    }
  }
}

/** Reads when the subscription's reads before have ended. */
export type Read = <Result>(reading: () => Promise<Result>) => Promise<Result>;
