import stringWidth from "string-width";
import { expect, test } from "vitest";
import { type Column, formatTable } from "./format-table.ts";

type Row = [when: string, id: string, name: string, note: string];

const columns: Column<Row>[] = [
  { header: "WHEN", value: ([when]) => when },
  { header: "ID", value: ([, id]) => id, ifNarrow: "below" },
  { header: "NAME", value: ([, , name]) => name, ifNarrow: "shorten" },
  { header: "NOTE", value: ([, , , note]) => note, ifNarrow: "drop" },
];
const rows: Row[] = [
  ["2026", "0123456789", "short", "aa"],
  ["2027", "0123456789", "東京旅行のとても長い名前", "b"],
];

test("if there is room, all columns are aligned with their headers", () => {
  expect(formatTable(columns, rows, 100)).toEqual([
    "WHEN  ID          NAME                      NOTE",
    "2026  0123456789  short                     aa",
    "2027  0123456789  東京旅行のとても長い名前  b",
  ]);
});

test("with less room, a column is left out, then texts are cut, then a column is printed below", () => {
  expect(formatTable(columns, rows, 45)).toEqual([
    "WHEN  ID          NAME",
    "2026  0123456789  short",
    "2027  0123456789  東京旅行のとても長い名前",
  ]);
  expect(formatTable(columns, rows, 34)).toEqual([
    "WHEN  ID          NAME",
    "2026  0123456789  short",
    "2027  0123456789  東京旅行のとて…",
  ]);
  expect(formatTable(columns, rows, 25)).toEqual([
    "WHEN  NAME",
    "2026  short",
    "  0123456789",
    "2027  東京旅行のとても長…",
    "  0123456789",
  ]);
});

test("the rightmost column is the first to be printed below, between words, and takes no line without a text", () => {
  const why: Column<Row> = { header: "WHY", value: ([, , , text]) => text, ifNarrow: "below" };
  const some: Row[] = [
    ["2026", "0123456789", "", "because of that"],
    ["2027", "0123456789", "", ""],
  ];
  expect(formatTable([...columns.slice(0, 2), why], some, 20)).toEqual([
    "WHEN  ID",
    "2026  0123456789",
    "  because of that",
    "2027  0123456789",
  ]);
  expect(formatTable([...columns.slice(0, 2), why], some, 13)).toEqual([
    "WHEN",
    "2026",
    "  0123456789",
    "  because of",
    "  that",
    "2027",
    "  0123456789",
  ]);
});

test("no line is wider than the terminal if that is possible", () => {
  for (let width = 18; width < 60; width += 1) {
    const widths = formatTable(columns, rows, width).map((line) => stringWidth(line));
    expect(Math.max(...widths)).toBeLessThanOrEqual(width);
  }
});

test("no value can control the terminal or break the line", () => {
  const lines = formatTable(columns, [["a\nb", "\u001b[2J", "\u009b31m", "\u202eabc"]], 100);
  expect(lines[1]).toBe(String.raw`a\u000ab  \u001b[2J  \u009b31m  \u202eabc`);
});
