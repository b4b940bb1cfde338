import type { Registry } from "@booking-events/runtime";
import type { Maintained } from "@booking-events/store";
import { Gauge } from "prom-client";

export type MaintenanceMetrics = ReturnType<typeof createMaintenanceMetrics>;

export function createMaintenanceMetrics(registry: Registry) {
  const registers = [registry];
  const succeeded = new Gauge({
    name: "booking_events_maintenance_success_timestamp_seconds",
    help: "When this worker last found the database maintained, or maintained it, without a problem.",
    registers,
  });
  const inDefault = new Gauge({
    name: "booking_events_default_partition_rows",
    help: "About how many events are in the default partition, because their month has no partition.",
    registers,
  });
  return {
    record({ problems, isBusy, isLocked }: Maintained, eventsInDefaultPartition: number): void {
      inDefault.set(eventsInDefaultPartition);
      if (problems.length === 0 && !isBusy && !isLocked) succeeded.setToCurrentTime();
    },
  };
}
