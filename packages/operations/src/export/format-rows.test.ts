import { expect, test } from "vitest";
import { toCsvLine, toJsonLine } from "./format-rows.ts";

const cell = (text: string) => toCsvLine(["reference"], { reference: text });

test.each([
  ["plain", "plain\r\n"],
  ["a,b", '"a,b"\r\n'],
  ['say "hi"', '"say ""hi"""\r\n'],
  ["one\ntwo", '"one\ntwo"\r\n'],
  ["東京 🏨", "東京 🏨\r\n"],
])("cells are quoted by RFC 4180: %j", (text, line) => {
  expect(cell(text)).toBe(line);
});

test.each([
  ...["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\tx", "\rx", "\nx", "＝1", "＋1", "－1", "＠x", "'=1", "'x"],
])("what a spreadsheet could take for a formula gets an apostrophe, which can be removed again: %j", (text) => {
  const line = cell(text);
  const read = line.startsWith('"') ? line.slice(1, -3).replaceAll('""', '"') : line.slice(0, -2);
  expect(read).toBe(`'${text}`);
});

test("nulls, times, lists and payloads have one text each", () => {
  const columns = ["deletedAt", "createdAt", "warnings", "sequence", "payload"];
  const row = {
    ...{ deletedAt: null, createdAt: new Date("2026-11-20T00:00:00.500Z"), warnings: ["a", "b"], sequence: 7 },
    payload: '{"price": 12345678901234567890.10}',
  };
  expect(toCsvLine(columns, row)).toBe(',2026-11-20T00:00:00.500Z,a b,7,"{""price"": 12345678901234567890.10}"\r\n');
  expect(toJsonLine(columns, row)).toBe(
    '{"deletedAt":null,"createdAt":"2026-11-20T00:00:00.500Z","warnings":["a","b"],"sequence":7,' +
      '"payload":{"price": 12345678901234567890.10}}\n',
  );
  expect(toJsonLine(["payload"], { payload: null })).toBe('{"payload":null}\n');
});
