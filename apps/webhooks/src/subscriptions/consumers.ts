import { FeedGapError, ForeignReaderError, type SingleOptions, StopDelivering } from "@booking-events/feed";
import type { Logger } from "@booking-events/runtime";
import type { WebhookSubscription } from "@booking-events/store";
import { type Network, Subscriber } from "@booking-events/subscribers";
import { postDelivery } from "../post/post-delivery.ts";
import { filterOf } from "./filter-of.ts";

/** The part of a `Deliverer` that is used. */
export interface Deliveries {
  add(options: SingleOptions & { onStopped: (error: unknown) => void }): void;
  /** Resolves when nothing is delivered to the consumer any more. */
  remove(name: string): Promise<void>;
}

interface Options {
  deliveries: Deliveries;
  network: Network;
  /** Records that a subscription gets no more, and why. */
  pause: (name: string, reason: string) => Promise<unknown>;
  /** Called when nothing is delivered to a subscription any more. */
  forget: (name: string) => void;
  logger: Logger;
}

interface Consumer {
  /** By which a subscription is known to have changed. */
  version: string;
  subscriber: Subscriber;
  /** Why nothing is delivered any more; undefined: something is. */
  stopped: string | undefined;
}

/** Bookings of one subscriber that are posted at a time. */
const concurrency = 8;
/** Longer than a post takes, so that the post itself says what it was that took so long. */
const attemptTimeoutMs = 20_000;

/** The subscriptions that are posted to, each of which is a consumer of the feed. */
export class Consumers {
  readonly #options: Options;
  readonly #consumers = new Map<string, Consumer>();
  /** Those of which the last posts are under way. */
  readonly #ending = new Set<string>();
  #wanted = new Map<string, WebhookSubscription>();

  constructor(options: Options) {
    this.#options = options;
  }

  get count(): number {
    return [...this.#consumers.values()].filter(({ stopped }) => stopped === undefined).length;
  }

  /**
   * Begins, changes and ends deliveries, so that they are as the subscriptions say. One whose deliveries have stopped by
   * themselves is paused.
   *
   * @throws if that can't be written. The next call tries again
   */
  async follow(subscriptions: readonly WebhookSubscription[]): Promise<void> {
    this.#wanted = new Map(subscriptions.map((subscription) => [subscription.name, subscription]));
    for (const [name, { version }] of this.#consumers) {
      const subscription = this.#wanted.get(name);
      if (subscription === undefined || versionOf(subscription) !== version) this.#remove(name);
    }
    for (const name of this.#wanted.keys()) this.#addIfWanted(name);
    for (const [name, { stopped }] of this.#consumers) {
      if (stopped !== undefined) await this.#options.pause(name, stopped);
    }
  }

  #addIfWanted(name: string): void {
    const subscription = this.#wanted.get(name);
    if (subscription === undefined || this.#consumers.has(name) || this.#ending.has(name)) return;
    const { deliveries, network } = this.#options;
    const subscriber = createSubscriber(subscription, network);
    const consumer: Consumer = { version: versionOf(subscription), subscriber, stopped: undefined };
    this.#consumers.set(name, consumer);
    deliveries.add({
      ...toConsumerOptions(subscription),
      handle: (delivery, { signal }) => postDelivery(subscriber, delivery, { payload: subscription.payload, signal }),
      onStopped: (error) => this.#stop(name, consumer, error),
    });
    this.#options.logger.info({ subscription: name }, "delivering to the subscription");
  }

  /** What its subscriber gets next waits for the end of what is under way. */
  #remove(name: string): void {
    const { deliveries, forget, logger } = this.#options;
    const consumer = this.#consumers.get(name);
    this.#consumers.delete(name);
    this.#ending.add(name);
    logger.info({ subscription: name }, "no longer delivering to the subscription as it was");
    void deliveries.remove(name).finally(() => {
      consumer?.subscriber.close();
      this.#ending.delete(name);
      forget(name);
      this.#addIfWanted(name);
    });
  }

  #stop(name: string, consumer: Consumer, error: unknown): void {
    const { pause, logger } = this.#options;
    consumer.stopped = explain(error);
    logger.warn({ subscription: name, err: error }, "pausing the subscription: nothing can be delivered to it");
    pause(name, consumer.stopped).catch((fault: unknown) =>
      logger.warn({ subscription: name, err: fault }, "the pause could not be written, and is written again soon"),
    );
  }
}

/** `updated_at` is not enough: the previous key ends by itself, and a replay may move the beginning. */
function versionOf({ updatedAt, createdAt, previousSigningKey, fromId }: WebhookSubscription): string {
  return [createdAt.getTime(), updatedAt.getTime(), previousSigningKey === null, fromId].join();
}

function createSubscriber(subscription: WebhookSubscription, network: Network): Subscriber {
  const { url, signingKey, previousSigningKey: key, previousKeyUntil: until } = subscription;
  const previousKey = key === null || until === null ? undefined : { key, until };
  return new Subscriber({ url, signingKey, previousKey, maxConnections: concurrency, network });
}

function toConsumerOptions(subscription: WebhookSubscription) {
  const { name, mode, fromId } = subscription;
  // Whoever posts to it can't empty what it keeps: an operator has told the subscriber.
  const from = { after: fromId, orOldest: true };
  return { name, mode, from, filter: filterOf(subscription), concurrency, timeoutMs: attemptTimeoutMs };
}

/** In a sentence for an operator. It stands in `subscriptions.pause_reason`. */
function explain(reason: unknown): string {
  if (reason instanceof StopDelivering) return reason.reason;
  if (reason instanceof FeedGapError)
    return "Changes that it had not been given were removed, since they were too old.";
  if (reason instanceof ForeignReaderError) return "The reader of this name in feed_readers belongs to another role.";
  return "The process that posts met an error of its own: see its log.";
}
