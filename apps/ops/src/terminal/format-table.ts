import { createRequire } from "node:module";
import { printable } from "./printable.ts";

const require = createRequire(import.meta.url);

export interface Column<Row> {
  header: string;
  value: (row: Row) => string;
  /** Aligns tables that are printed one after another. */
  minWidth?: number;
  /**
   * How a table that is wider than the terminal gets narrower. These are tried in order until the table fits: leave the
   * column out, cut its texts, print it on a line of its own below the row. The rightmost column is the first.
   */
  ifNarrow?: "drop" | "shorten" | "below";
}

const gap = "  ";
const minShortWidth = 12;

/**
 * Formats a table without borders.
 *
 * @param width in terminal cells
 * @returns the header, and then for each row a line, and the texts of the columns that are printed below
 */
export function formatTable<Row>(columns: Column<Row>[], rows: Row[], width: number): string[] {
  const measured = columns.map((column) => toMeasured(column, rows));
  const kept = dropToFit(measured, width);
  const below = moveBelowToFit(kept, width);
  const shown = shortenToFit(
    kept.filter((column) => !below.includes(column)),
    width,
  );
  return [
    toLine(shown, ({ header }) => header),
    ...rows.flatMap((_, row) => {
      const line = toLine(shown, ({ cells }) => cells[row] ?? "");
      const texts = below.map(({ cells }) => cells[row] ?? "").filter((text) => text !== "");
      return [line, ...texts.flatMap((text) => wrap(text, width - gap.length)).map((text) => gap + text)];
    }),
  ];
}

/** Returns the headers of the columns that {@link formatTable} leaves out. */
export function findDroppedHeaders<Row>(columns: Column<Row>[], rows: Row[], width: number): string[] {
  const measured = columns.map((column) => toMeasured(column, rows));
  const kept = dropToFit(measured, width);
  return measured.filter((column) => !kept.includes(column)).map(({ header }) => header);
}

interface MeasuredColumn {
  header: string;
  cells: string[];
  width: number;
  ifNarrow: Column<never>["ifNarrow"];
}

function toMeasured<Row>({ header, value, minWidth = 0, ifNarrow }: Column<Row>, rows: Row[]): MeasuredColumn {
  const cells = rows.map((row) => printable(value(row)));
  const width = Math.max(minWidth, ...[header, ...cells].map((text) => stringWidth(text)));
  return { header, cells, width, ifNarrow };
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

function dropToFit(columns: MeasuredColumn[], width: number): MeasuredColumn[] {
  const dropped = columns.findLast(({ ifNarrow }) => ifNarrow === "drop");
  if (dropped === undefined || totalWidth(columns) <= width) return columns;
  return dropToFit(
    columns.filter((column) => column !== dropped),
    width,
  );
}

/** @returns the columns that are printed below */
function moveBelowToFit(columns: MeasuredColumn[], width: number): MeasuredColumn[] {
  const moved = columns.findLast(({ ifNarrow }) => ifNarrow === "below");
  if (moved === undefined || minWidth(columns) <= width) return [];
  const rest = columns.filter((column) => column !== moved);
  return [...moveBelowToFit(rest, width), moved];
}

/** Shortens the widest column first. */
function shortenToFit(columns: MeasuredColumn[], width: number): MeasuredColumn[] {
  const widest = columns
    .filter(({ ifNarrow, width: own }) => ifNarrow === "shorten" && own > minShortWidth)
    .reduce<MeasuredColumn | undefined>((a, b) => (a !== undefined && a.width >= b.width ? a : b), undefined);
  const excess = totalWidth(columns) - width;
  if (widest === undefined || excess <= 0) return columns;
  const shortWidth = Math.max(widest.width - excess, minShortWidth);
  const short = { ...widest, width: shortWidth, cells: widest.cells.map((cell) => shorten(cell, shortWidth)) };
  return shortenToFit(
    columns.map((column) => (column === widest ? short : column)),
    width,
  );
}

function totalWidth(columns: MeasuredColumn[]): number {
  return columns.reduce((total, column) => total + column.width, gap.length * (columns.length - 1));
}

/** The width after cutting all texts that may be cut. */
function minWidth(columns: MeasuredColumn[]): number {
  return totalWidth(
    columns.map((column) =>
      column.ifNarrow === "shorten" ? { ...column, width: Math.min(column.width, minShortWidth) } : column,
    ),
  );
}

function shorten(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  let short = "";
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    if (stringWidth(short + segment) > width - 1) break;
    short += segment;
  }
  return `${short}…`;
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
