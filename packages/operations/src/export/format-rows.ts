import type { ExportedRow } from "@booking-events/store";

export type ExportFormat = "csv" | "ndjson";

export function toCsvHeader(columns: string[]): string {
  return `${columns.join(",")}\r\n`;
}

/** Formats a row by RFC 4180. A null is an empty cell, and a list has spaces between its values. */
export function toCsvLine(columns: string[], row: ExportedRow): string {
  return `${columns.map((column) => toCell(toText(row[column]))).join(",")}\r\n`;
}

/** Formats a row as a line of JSON. The payload is taken over as text, so numbers keep their digits. */
export function toJsonLine(columns: string[], row: ExportedRow): string {
  const fields = columns.map((column) => {
    const json = column === "payload" ? (row.payload ?? "null") : JSON.stringify(row[column] ?? null);
    return `${JSON.stringify(column)}:${json}`;
  });
  return `{${fields.join(",")}}\n`;
}

function toText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (value instanceof Date) return value.toISOString();
  return Array.isArray(value) ? value.join(" ") : String(value);
}

/**
 * What a spreadsheet could take for a formula: partners' texts may begin so. An apostrophe before it makes it text. So does
 * one before an apostrophe, so that whoever removes the first apostrophe of each cell has what the partner sent.
 *
 * Some spreadsheets ignore white space before a formula, and some know the full-width signs.
 */
const formula = /^(?:'|\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])/;

function toCell(text: string): string {
  const safe = formula.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
