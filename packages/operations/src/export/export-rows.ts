import { type ExportFilter, exportBookings, exportEvents } from "@booking-events/store";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import { readDatabase } from "../services/database.ts";
import { requireKnown } from "../services/partners-file.ts";
import { type ExportFormat, toCsvHeader, toCsvLine, toJsonLine } from "./format-rows.ts";

export interface ExportRequest extends ExportFilter {
  what: "bookings" | "events";
  format: ExportFormat;
  /** Also what partners sent, which is personal data of guests. */
  withPayload: boolean;
}

/**
 * Exports bookings or events as they are at one moment. That it is done is recorded first, and then the number of rows,
 * since data leaves the service.
 *
 * @param write is given some lines at a time, and waited for
 * @returns the number of rows
 */
export function exportRows(
  context: ActingContext,
  { what, format, ...request }: ExportRequest,
  write: (lines: string, rows: number) => Promise<void>,
): Promise<number> {
  const action = { command: `export ${what}`, arguments: { format, ...request }, mustBeRecorded: true };
  return recordAction(context, action, async (record) => {
    const did = { rows: 0 };
    record.did = did;
    const read = what === "bookings" ? exportBookings : exportEvents;
    const columns = [...exportedColumns[what], ...(request.withPayload ? ["payload"] : [])];
    const toLine = format === "csv" ? toCsvLine : toJsonLine;
    await readDatabase(context, async (client) => {
      for await (const rows of read(client, request, request.withPayload)) {
        const header = format === "csv" && did.rows === 0 ? toCsvHeader(columns) : "";
        await write(header + rows.map((row) => toLine(columns, row)).join(""), rows.length);
        did.rows += rows.length;
      }
    });
    requireKnown(context, request.partner, { length: did.rows });
    if (format === "csv" && did.rows === 0) await write(toCsvHeader(columns), 0);
    return did.rows;
  });
}

/** Without the payload. */
export const exportedColumns = {
  bookings: [
    ...["bookingId", "partner", "referenceKind", "reference", "state", "revision", "sequence", "createdAt"],
    ...["updatedAt", "deletedAt", "erasedAt", "arrivalDate", "returnDate", "destinationCountry", "destinationAirport"],
  ],
  events: [
    ...["id", "partner", "kind", "referenceKind", "reference", "sequence", "idempotencyKey", "secretId", "outcome"],
    ...["duplicateOf", "warnings", "receivedAt", "processedAt"],
  ],
};
