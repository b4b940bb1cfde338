import { createRequire } from "node:module";
import { printable } from "./printable.ts";

const require = createRequire(import.meta.url);

export interface Column<Row> {
  header: string;
  value: (row: Row) => string;
  /** Aligns tables that are printed one after another. */
  minWidth?: number;
}

const gap = "  ";

/** So many columns may be printed below each row. If there are more, each row is a record. */
const maxBelow = 1;

/**
 * Formats a table without borders. Of a table that is wider than the terminal, the widest column is printed below each
 * row. The first one stays. If that is not enough, each row becomes a record: a line for each column that has a value.
 *
 * @param width in terminal cells
 * @returns the header, unless the rows are records, and the lines
 */
export function formatTable<Row>(
  columns: Column<Row>[],
  rows: Row[],
  width: number,
): { header: string | null; lines: string[] } {
  const measured = columns.map((column) => toMeasured(column, rows));
  const shown = chooseShown(measured, width);
  const below = measured.filter((column) => !shown.includes(column));
  if (below.length > maxBelow) return { header: null, lines: rows.flatMap((_, row) => toRecord(measured, row, width)) };
  return {
    header: toLine(shown, ({ header }) => header),
    lines: rows.flatMap((_, row) => [
      toLine(shown, ({ cells }) => cells[row] ?? ""),
      ...below
        .filter(({ cells }) => cells[row] !== "")
        .flatMap(({ header, cells }) => wrap(`${header}: ${cells[row]}`, width - gap.length))
        .map((line) => gap + line),
    ]),
  };
}

/** Records are separated by an empty line. A word that has no room beside its header stands below it. */
function toRecord(columns: MeasuredColumn[], row: number, width: number): string[] {
  const labelWidth = Math.max(...columns.map(({ header }) => header.length)) + gap.length;
  const lines = columns
    .filter(({ cells }) => cells[row] !== "")
    .flatMap(({ header, cells }) => {
      const text = cells[row] ?? "";
      const beside = wrap(text, width - labelWidth);
      if (beside.some((line) => stringWidth(line) > width - labelWidth))
        return [header, ...wrap(text, width - gap.length).map((line) => gap + line)];
      return beside.map((line, index) => (index === 0 ? header : "").padEnd(labelWidth) + line);
    });
  return row === 0 ? lines : ["", ...lines];
}

interface MeasuredColumn {
  header: string;
  cells: string[];
  width: number;
}

function toMeasured<Row>({ header, value, minWidth = 0 }: Column<Row>, rows: Row[]): MeasuredColumn {
  const cells = rows.map((row) => printable(value(row)));
  const width = [header, ...cells].reduce((widest, text) => Math.max(widest, stringWidth(text)), minWidth);
  return { header, cells, width };
}

function chooseShown(columns: MeasuredColumn[], width: number): MeasuredColumn[] {
  const total = columns.reduce((sum, column) => sum + column.width, gap.length * (columns.length - 1));
  const [, ...movable] = columns;
  if (total <= width || movable.length === 0) return columns;
  const widest = movable.reduce((one, other) => (other.width >= one.width ? other : one));
  return chooseShown(
    columns.filter((column) => column !== widest),
    width,
  );
}

/**
 * Returns the number of terminal cells of a printable text. string-width is loaded for the first text that needs it:
 * it creates an Intl.Segmenter, which takes a sixth of a command's start.
 */
function stringWidth(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  const { default: measure }: typeof import("string-width") = require("string-width");
  return measure(text);
}

/** Breaks a text between words. A word that is wider than the terminal stays whole. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const line = lines.at(-1);
    if (line !== undefined && stringWidth(`${line} ${word}`) <= width) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}

function toLine(columns: MeasuredColumn[], textOf: (column: MeasuredColumn) => string): string {
  return columns
    .map((column) => textOf(column) + " ".repeat(Math.max(column.width - stringWidth(textOf(column)), 0)))
    .join(gap)
    .trimEnd();
}
