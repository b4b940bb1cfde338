import { type EventDetails, toSeconds } from "@booking-events/operations";
import type { Column } from "../../terminal/format-table.ts";

/** With `--follow`, tables of them are printed one after another. */
export const columns: Column<EventDetails>[] = [
  { header: "RECEIVED", value: (event) => toSeconds(event.receivedAt), minWidth: "2026-11-20T00:00:00Z".length },
  { header: "KIND", value: (event) => event.kind, minWidth: "create".length },
  { header: "OUTCOME", value: (event) => event.outcome, minWidth: "superseded".length },
  { header: "EVENT ID", value: (event) => event.id, minWidth: 36 },
  { header: "PARTNER", value: (event) => event.partner, minWidth: 12 },
  { header: "REFERENCE", value: (event) => event.reference },
];
