import type { Registry } from "@booking-events/runtime";
import type { LogStatus, Maintained } from "@booking-events/store";
import { Counter, Gauge } from "prom-client";

export class MaintenanceMetrics {
  readonly #removed: Counter;
  readonly #dropped: Counter;
  readonly #succeeded: Gauge;
  readonly #oldest: Gauge;
  readonly #inDefault: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#removed = new Counter({
      name: "booking_events_retention_removed_total",
      help: "Rows that this worker has deleted because they were too old, by table; for bookings, emptied of their content.",
      labelNames: ["table"],
      registers,
    });
    this.#dropped = new Counter({
      name: "booking_events_partitions_dropped_total",
      help: "Partitions of the log that this worker has dropped because they were too old.",
      registers,
    });
    this.#succeeded = new Gauge({
      name: "booking_events_maintenance_success_timestamp_seconds",
      help: "When this worker last found the database maintained, or maintained it, without a problem.",
      registers,
    });
    this.#oldest = new Gauge({
      name: "booking_events_oldest_timestamp_seconds",
      help: "When the oldest event in the log was received.",
      registers,
    });
    this.#inDefault = new Gauge({
      name: "booking_events_default_partition_rows",
      help: "About how many events are in the default partition, because their month has no partition.",
      registers,
    });
  }

  countRemoved({ removed, droppedPartitions }: Pick<Maintained, "removed" | "droppedPartitions">): void {
    for (const [table, count] of Object.entries(removed)) this.#removed.inc({ table }, count);
    this.#dropped.inc(droppedPartitions.length);
  }

  setStatus({ oldestEventAt, eventsInDefaultPartition }: LogStatus): void {
    if (oldestEventAt !== null) this.#oldest.set(oldestEventAt.getTime() / 1_000);
    this.#inDefault.set(eventsInDefaultPartition);
  }

  noteSuccess(): void {
    this.#succeeded.setToCurrentTime();
  }
}
