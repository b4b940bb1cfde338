import type { Registry } from "@booking-events/runtime";
import type { LogStatus, Maintained } from "@booking-events/store";
import { Counter, Gauge } from "prom-client";

export type MaintenanceMetrics = ReturnType<typeof createMaintenanceMetrics>;

export function createMaintenanceMetrics(registry: Registry) {
  const registers = [registry];
  const removed = new Counter({
    name: "booking_events_retention_removed_total",
    help: "Rows that this worker has deleted because they were too old, by table; for bookings, emptied of their content.",
    labelNames: ["table"],
    registers,
  });
  const dropped = new Counter({
    name: "booking_events_partitions_dropped_total",
    help: "Partitions of the log that this worker has dropped because they were too old.",
    registers,
  });
  const succeeded = new Gauge({
    name: "booking_events_maintenance_success_timestamp_seconds",
    help: "When this worker last found the database maintained, or maintained it, without a problem.",
    registers,
  });
  const oldest = new Gauge({
    name: "booking_events_oldest_timestamp_seconds",
    help: "When the oldest event in the log was received.",
    registers,
  });
  const inDefault = new Gauge({
    name: "booking_events_default_partition_rows",
    help: "About how many events are in the default partition, because their month has no partition.",
    registers,
  });
  return {
    record(done: Maintained, { oldestEventAt, eventsInDefaultPartition }: LogStatus): void {
      for (const [table, count] of Object.entries(done.removed)) removed.inc({ table }, count);
      dropped.inc(done.droppedPartitions.length);
      if (oldestEventAt !== null) oldest.set(oldestEventAt.getTime() / 1_000);
      inDefault.set(eventsInDefaultPartition);
      if (done.problems.length === 0 && !done.isBusy && !done.isLocked) succeeded.setToCurrentTime();
    },
  };
}
