import stringWidth from "string-width";
import { expect, test } from "vitest";
import { type Column, formatTable } from "./format-table.ts";

type Row = [when: string, id: string, name: string, note: string];

const columns: Column<Row>[] = [
  { header: "WHEN", value: ([when]) => when },
  { header: "ID", value: ([, id]) => id },
  { header: "NAME", value: ([, , name]) => name },
  { header: "NOTE", value: ([, , , note]) => note },
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

test("with less room, the widest columns are printed below each row, without cutting any text", () => {
  expect(formatTable(columns, rows, 45)).toEqual([
    "WHEN  ID          NOTE",
    "2026  0123456789  aa",
    "  NAME: short",
    "2027  0123456789  b",
    "  NAME: 東京旅行のとても長い名前",
  ]);
  expect(formatTable(columns, rows, 20)).toEqual([
    "WHEN  NOTE",
    "2026  aa",
    "  ID: 0123456789",
    "  NAME: short",
    "2027  b",
    "  ID: 0123456789",
    "  NAME:",
    "  東京旅行のとても長い名前",
  ]);
});

test("a text below a row breaks between words, and takes no line if it is empty", () => {
  const why: Column<Row> = { header: "WHY", value: ([, , , text]) => text };
  const some: Row[] = [
    ["2026", "0123456789", "", "because of that"],
    ["2027", "0123456789", "", ""],
  ];
  expect(formatTable([...columns.slice(0, 2), why], some, 20)).toEqual([
    "WHEN  ID",
    "2026  0123456789",
    "  WHY: because of",
    "  that",
    "2027  0123456789",
  ]);
});

test("no line is wider than the terminal if that is possible", () => {
  for (let width = 26; width < 60; width += 1) {
    const widths = formatTable(columns, rows, width).map((line) => stringWidth(line));
    expect(Math.max(...widths)).toBeLessThanOrEqual(width);
  }
});

test("no value can control the terminal or break the line", () => {
  const lines = formatTable(columns, [["a\nb", "\u001b[2J", "\u009b31m", "\u202eabc"]], 100);
  expect(lines[1]).toBe(String.raw`a\u000ab  \u001b[2J  \u009b31m  \u202eabc`);
});
