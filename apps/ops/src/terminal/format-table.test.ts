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
  expect(formatTable(columns, rows, 100)).toEqual({
    header: "WHEN  ID          NAME                      NOTE",
    lines: ["2026  0123456789  short                     aa", "2027  0123456789  東京旅行のとても長い名前  b"],
  });
});

test("with less room, the widest column is printed below each row, without cutting any text", () => {
  expect(formatTable(columns, rows, 45)).toEqual({
    header: "WHEN  ID          NOTE",
    lines: ["2026  0123456789  aa", "  NAME: short", "2027  0123456789  b", "  NAME: 東京旅行のとても長い名前"],
  });
});

test("if that is not enough, each row becomes a record, whose texts break between words", () => {
  const some: Row[] = [
    ["2026", "0123456789", "because of all that", "aa"],
    ["2027", "0123456789", "", "b"],
  ];
  expect(formatTable(columns, some, 19)).toEqual({
    header: null,
    lines: [
      ...["WHEN  2026", "ID    0123456789", "NAME  because of", "      all that", "NOTE  aa", ""],
      ...["WHEN  2027", "ID    0123456789", "NOTE  b"],
    ],
  });
});

test("a word of a record that has no room beside its header stands below it", () => {
  expect(formatTable(columns, [["2026", "0123456789", "because of thatwordalone", "aa"]], 18).lines).toEqual([
    ...["WHEN  2026", "ID    0123456789", "NAME", "  because of", "  thatwordalone", "NOTE  aa"],
  ]);
});

test("a text below a row breaks between words, and takes no line if it is empty", () => {
  const why: Column<Row> = { header: "WHY", value: ([, , , text]) => text };
  const some: Row[] = [
    ["2026", "0123456789", "", "because of that"],
    ["2027", "0123456789", "", ""],
  ];
  expect(formatTable([...columns.slice(0, 2), why], some, 20)).toEqual({
    header: "WHEN  ID",
    lines: ["2026  0123456789", "  WHY: because of", "  that", "2027  0123456789"],
  });
});

test("no line is wider than the terminal if that is possible", () => {
  for (let width = 30; width < 60; width += 1) {
    const { header, lines } = formatTable(columns, rows, width);
    const widths = [header ?? "", ...lines].map((line) => stringWidth(line));
    expect(Math.max(...widths)).toBeLessThanOrEqual(width);
  }
});

test("a table may have more rows than a call may have arguments", () => {
  const many = Array.from({ length: 200_000 }, () => rows[0] as Row);
  expect(formatTable(columns, many, 100).lines).toHaveLength(200_000);
});

test("no value can control the terminal or break the line", () => {
  const { lines } = formatTable(columns, [["a\nb", "\u001b[2J", "\u009b31m", "\u202eabc"]], 100);
  expect(lines[0]).toBe(String.raw`a\u000ab  \u001b[2J  \u009b31m  \u202eabc`);
});
