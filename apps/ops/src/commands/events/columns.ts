import type { EventDetails } from "@booking-events/store";
import type { Column } from "../../terminal/format-table.ts";
import { toSeconds } from "../../terminal/print.ts";

export const columns: Column<EventDetails>[] = [
  { header: "RECEIVED", value: (event) => toSeconds(event.receivedAt) },
  { header: "KIND", value: (event) => event.kind },
  { header: "OUTCOME", value: (event) => event.outcome },
  { header: "EVENT ID", value: (event) => event.id },
  { header: "PARTNER", value: (event) => event.partner },
  { header: "REFERENCE", value: (event) => event.reference },
];

const minWidths: Record<string, number> = {
  RECEIVED: "2026-11-20T00:00:00Z".length,
  KIND: "create".length,
  OUTCOME: "superseded".length,
  "EVENT ID": 36,
  PARTNER: 12,
};

/** For tables that are printed one after another. */
export const followColumns = columns.map((column) => ({ ...column, minWidth: minWidths[column.header] ?? 0 }));
