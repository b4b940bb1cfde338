import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { variables } from "./environment.ts";

const root = join(import.meta.dirname, "../../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

/** The rows of the table in a page's section Limits, as their cells. */
function readLimits(page: string): string[][] {
  const section = read(page).split("\n## Limits\n")[1]?.split(/^## /m)[0] ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("|"));
  return rows.slice(2).map((row) => row.split("|").map((cell) => cell.trim()));
}

const factors: Record<string, number> = {
  s: 1_000,
  min: 60_000,
  KiB: 1_024,
};

/** A quantity of a page, such as "1.5 s" or "2,000", in milliseconds, bytes or pieces. */
function toNumber(quantity: string): number {
  const [, digits = "", unit] = /^([\d,]+(?:\.\d+)?)(?: (\w+))?$/.exec(quantity) ?? [];
  return Number(digits.replaceAll(",", "")) * (unit === undefined ? 1 : (factors[unit] ?? Number.NaN));
}

/** What a file defines a number as, from numbers and other definitions of the same file. */
function readConstant(path: string, name: string): number {
  const definitions = [...read(path).matchAll(new RegExp(`\\b${name}(?: =|:) ([\\w .*+]+?)(?:[;,]| \\})`, "g"))];
  const values = definitions.map(([, value = ""]) => value).filter((value) => !/^(?:number|string)$/.test(value));
  if (values.length !== 1) throw new Error(`${path} defines ${name} ${values.length} times`);
  return evaluate(values[0] ?? "", (other) => readConstant(path, other));
}

/** Sums of products: more is not needed. */
function evaluate(expression: string, resolve: (name: string) => number): number {
  const toValue = (term: string) => (/^[\d_.]+$/.test(term) ? Number(term.replaceAll("_", "")) : resolve(term));
  const products = expression.split(" + ").map((product) => product.split(" * ").map(toValue));
  return products.reduce((sum, factors) => sum + factors.reduce((product, factor) => product * factor, 1), 0);
}

describe("the partner guide has the limits of the code", () => {
  const server = "packages/http/src/server/partner-facing-server.ts";
  const constants: Record<string, number> = {
    body: Number(v.parse(variables.BODY_LIMIT_BYTES, undefined)),
    "URL and headers together": readConstant(server, "maxHeaderBytes"),
    "time for the whole request to arrive": readConstant(server, "requestTimeoutMs"),
    "time for the headers to arrive": readConstant(server, "headersTimeoutMs"),
    "unanswered requests on a connection": readConstant(server, "maxRequestsUnderWay"),
    "time in which you must read an answer": readConstant(server, "unreadAnswerTimeoutMs"),
    // As an event alone.
    "line of a [batch](#first-loads)": Number(v.parse(variables.BODY_LIMIT_BYTES, undefined)),
    // Of each partner: no constant, but a set of partners.
    "batches at once": 1,
  };

  test("in its table", () => {
    const documented = readLimits("docs/partner-guide.md").map(([, limit = "", value = ""]) => [
      limit,
      toNumber(value),
    ]);
    expect(documented).toEqual(Object.entries(constants));
  });

  test("in its text", () => {
    const limiter = "packages/http/src/partners/limit-partners.ts";
    const pattern =
      /payload over (.+?) or (\d+) JSON values counts as several requests: one for each started (.+?) or (\d+)/;
    const [, ...documented] = pattern.exec(read("docs/partner-guide.md")) ?? [];
    const constants = [readConstant(limiter, "tokenBytes"), readConstant(limiter, "tokenValues")];
    expect(documented.map(toNumber)).toEqual([...constants, ...constants]);
  });

  test("in its text about lists of bookings", () => {
    const list = "apps/lookup/src/reconcile/read-list.ts";
    const pattern = /It has up to (.+?) lines of up to (.+?) and takes up to (\d+) minutes to send/;
    const [, lines = "", bytes = "", minutes] = pattern.exec(read("docs/partner-guide.md")) ?? [];
    expect([lines, bytes, `${minutes} min`].map(toNumber)).toEqual([
      readConstant(list, "maxLines"),
      readConstant(list, "maxLineBytes"),
      readConstant(list, "sendingTimeoutMs"),
    ]);
  });
});

test.each([
  ["64 KiB", 65_536],
  ["1.5 s", 1_500],
  ["5 min", 300_000],
  ["2,000", 2_000],
  ["5 lightyears", Number.NaN],
  ["some", 0],
])("a page's quantity %s is read as %d", (quantity, number) => expect(toNumber(quantity)).toBe(number));
