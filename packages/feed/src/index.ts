export type {
  BatchOptions,
  CommonOptions,
  ConsumerOptions,
  DeliveryFilter,
  RetryPolicy,
  SingleOptions,
} from "./deliver/consumer-options.ts";
export { type DeliverOptions, deliver } from "./deliver/deliver.ts";
export { Deliverer, type DelivererOptions } from "./deliver/deliverer.ts";
export type { Delivery, DeliveryContext } from "./deliver/delivery.ts";
export type { DeliveryEvent } from "./deliver/delivery-event.ts";
export { RetryAfter, StopDelivering } from "./deliver/errors.ts";
export { needsMemory } from "./deliver/filter.ts";
export { FeedGapError, ForeignReaderError, ParkedDeliveriesError } from "./errors.ts";
export { type FollowOptions, follow } from "./follow.ts";
export type { HandlingContext } from "./handle-changes.ts";
export type { FeedLogger } from "./logger.ts";
export { type PulledChange, type PulledPage, type PullOptions, pullChanges } from "./pull/pull-changes.ts";
export { type PullSnapshotOptions, pullSnapshot } from "./pull/pull-snapshot.ts";
export type { BookingChange } from "./read-changes.ts";
