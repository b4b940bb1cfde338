import type { Queryable } from "@booking-events/store";
import type pg from "pg";
import type { FeedLogger } from "../logger.ts";
import type { FeedTables } from "../tables.ts";
import type { DueDelivery, Progress } from "./deliveries.ts";
import type { DeliveryEvent } from "./delivery-event.ts";
import type { Found, Wanted } from "./read-deliveries.ts";
import type { Tail } from "./tail.ts";

/** What a consumer gets from the process that it shares with others. */
export interface Host {
  tail: Tail;
  tables: FeedTables;
  /** For handlers. */
  pool: pg.Pool;
  logger: FeedLogger;
  observe: (event: DeliveryEvent) => void;
  /** Runs queries. Waits out outages. */
  read: <Result>(work: (client: Queryable) => Promise<Result>) => Promise<Result>;
  /** Reads what is to be handed over, together with what others want. Waits out outages. */
  find: (wanted: Wanted, options: { mayWait: boolean }) => Promise<Found>;
  /** There is progress to record. `isUrgent`: nothing else is under way, so nothing is gained by waiting for more. */
  noteProgress: (consumer: ActiveConsumer, isUrgent: boolean) => void;
  /** A delivery of the consumer is due that was not noted as progress. */
  lookForDue: (consumer: ActiveConsumer) => void;
  /** Another process has the lease. */
  lose: (consumer: ActiveConsumer) => void;
  /** The consumer can't go on, or doesn't want to. */
  stop: (consumer: ActiveConsumer, error: Error) => void;
}

/** A consumer whose lease the process holds. */
export interface ActiveConsumer {
  readonly name: string;
  /** Of its lease. */
  readonly token: string;
  /** Until when nobody else can have the lease, by `performance.now()`. */
  validUntilMs: number;
  /** Deliveries may wait for another attempt. */
  hasWaiting: boolean;
  /** The place has moved, so rows of deliveries may have become useless. */
  hasSpent: boolean;
  /** There may be something to do. */
  wake(): void;
  /** Deliveries that are due. */
  offer(due: DueDelivery[]): void;
  /** @returns null: nothing has changed */
  takeProgress(): Progress | null;
  /** What was taken last is recorded. */
  recorded(): void;
  /** Begins nothing more. @returns when what was under way has ended */
  drain(): Promise<void>;
  /** Ends what is under way. Nothing of it counts. */
  abort(): void;
}
