import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  answers,
  bookingFields,
  findWarnings,
  isIdempotencyKey,
  maxJsonValues,
  maxNestingLevels,
  maxViolations,
  maxWarnings,
  validatePayload,
  violationCodes,
  warningCodes,
} from "./index.ts";
import { maxDigits, maxDigitsInPayload } from "./payload/unknown-fields.ts";

const guide = readFileSync(new URL("../../../docs/partner-guide.md", import.meta.url), "utf8");

/** The first cells of the table that starts with the header, without their backticks. */
function readTable(header: RegExp): string[][] {
  const lines = guide.split("\n");
  const rows = lines.slice(lines.findIndex((line) => header.test(line)) + 2);
  const end = rows.findIndex((line) => !line.startsWith("|"));
  return rows.slice(0, end).map((row) => row.split("|").map((cell) => cell.trim().replaceAll("`", "")));
}

const maxTextLength = 8_192;

function namesIn(text: string): string[] {
  return Array.from(text.matchAll(/`(\w+)`/g), ([, name = ""]) => name);
}

test("the partner guide lists the fields, and those that may be null", () => {
  const [, list = ""] = /^## Payloads\n\n.*:\n\n((?:- .*\n)+)/m.exec(guide) ?? [];
  expect(namesIn(list).toSorted()).toEqual(bookingFields.map(({ name }) => name).toSorted());
  const [, nullable = ""] = /`null` is refused, except for (.*?)\./.exec(guide) ?? [];
  const nullableFields = bookingFields.filter((field) => field.nullable);
  expect(namesIn(nullable)).toEqual(nullableFields.map(({ name }) => name));
  const [, anything] = /In the last (\w+), what we cannot read counts as no value/.exec(guide) ?? [];
  expect(anything).toBe("three");
  expect(bookingFields.filter(({ acceptsAnything }) => acceptsAnything)).toEqual(nullableFields.slice(-3));
});

test("the partner guide lists the retired names", () => {
  const [, list = ""] = /names are retired, and get a warning: (.*?)\./.exec(guide) ?? [];
  const retired = namesIn(list);
  const withAll = Object.fromEntries(["consumerTripPartnerExternalReference", ...retired].map((name) => [name, "x"]));
  const warnings = findWarnings("create", withAll).map(({ code, propertyPath }) => [code, ...propertyPath]);
  expect(retired).toHaveLength(2);
  expect(warnings).toEqual(retired.map((name) => ["retired", name]));
});

test("the partner guide's example of a refusal is what its payload gets", () => {
  const [, example = ""] = /^```json\n(.*?)^```/ms.exec(guide) ?? [];
  const payload = { consumerTripPartnerExternalReference: "x", consumerPhone: null, agentEmail: "x" };
  const result = validatePayload("create", payload);
  expect(JSON.parse(example).violationList).toEqual(result.success ? [] : result.violationList);
});

test("the partner guide lists the codes of violations", () => {
  const listed = readTable(/^\| Violation /).flatMap(([, codes = ""]) => codes.split(", "));
  expect(listed.toSorted()).toEqual(violationCodes.toSorted());
});

test("the partner guide lists the codes of warnings, and its example is what its payload gets", () => {
  const [, section = ""] = /^### Warnings\n(.*?)^## /ms.exec(guide) ?? [];
  const listed = readTable(/^\| Warning /).map(([, code]) => code);
  expect(listed).toEqual(warningCodes);
  const [, payload = "", answer = ""] = /^For example, `(.*?)`.*?^```text\n(.*?)^```/ms.exec(section) ?? [];
  const warnings = findWarnings("create", JSON.parse(`{${payload}}`));
  expect(answer).toBe(`${answers.accepted("01a1fafe-d690-7608-9309-bff7f221cbc9", warnings).body}\n`);
});

describe("the partner guide states the limit of", () => {
  const maxLengths = new Map<string, number>(bookingFields.map(({ name, maxLength }) => [name, maxLength]));
  const inEnglish = (limit: number) => limit.toLocaleString("en");

  test.each([
    ["a text", `up to ${inEnglish(maxTextLength)} characters (Unicode code points)`],
    ["a trip reference", `the trip reference of up to ${maxLengths.get("consumerTripPartnerExternalReference")}`],
    ["nesting", `up to ${maxNestingLevels} levels deep`],
    ["values", `${inEnglish(maxJsonValues)} values in a payload`],
    ["warnings", `up to ${maxWarnings} \`warnings\``],
    ["violations", `up to ${maxViolations} violations`],
    ["digits", `more than ${inEnglish(maxDigits)} digits, or numbers with more than ${inEnglish(maxDigitsInPayload)}`],
  ])("%s", (_, statement) => expect(guide).toContain(statement));

  test("an idempotency key", () => {
    const [, longest] = /key of 1 to (\d+) visible ASCII characters/.exec(guide) ?? [];
    expect(isIdempotencyKey("k".repeat(Number(longest)))).toBe(true);
    expect(isIdempotencyKey("k".repeat(Number(longest) + 1))).toBe(false);
  });

  test("a name in a propertyPath", () => {
    const [, longest] = /names longer than (\d+) characters are cut/.exec(guide) ?? [];
    const length = Number(longest);
    const result = validatePayload("create", {
      [`${"n".repeat(length)}`]: Number.NaN,
      [`${"m".repeat(length + 1)}`]: Number.NaN,
    });
    const names = result.success ? [] : result.violationList.map(({ propertyPath }) => propertyPath[0]);
    expect(names).toContain("n".repeat(length));
    expect(names).toContain(`${"m".repeat(length)}…`);
  });
});
