import fc from "fast-check";
import { expect, test } from "vitest";
import { maxJsonValues, maxWarnings, replaceUnstorableText } from "../index.ts";

const trip = "consumerTripPartnerExternalReference";
const consumer = "consumerPartnerExternalReference";

/** What remains of a payload, and where it was changed. */
function replaceIn(payload: Record<string, unknown>) {
  const { warnings, hasEqualNames } = replaceUnstorableText(payload);
  return { payload, hasEqualNames, paths: warnings.map(({ propertyPath }) => propertyPath), warnings };
}

test("U+0000 and halves of surrogate pairs are replaced in values at any depth, and in names", () => {
  const payload = { [trip]: "T", consumerPhone: "a\0\ud800b😀", "x\0": [{ "\udc00y": "\0" }, 1, null], ok: "\ufffd" };

  const { warnings, ...replaced } = replaceIn(payload);

  expect(replaced).toEqual({
    payload: {
      [trip]: "T",
      consumerPhone: "a\ufffd\ufffdb😀",
      "x\ufffd": [{ "\ufffdy": "\ufffd" }, 1, null],
      ok: "\ufffd",
    },
    hasEqualNames: false,
    paths: [["x\ufffd"], ["consumerPhone"], ["x\ufffd", "0", "\ufffdy"], ["x\ufffd", "0", "\ufffdy"]],
  });
  expect(Object.keys(payload)).toEqual([trip, "consumerPhone", "x\ufffd", "ok"]);
  expect(warnings.map(({ code, field }) => [code, field])).toEqual([
    ["unstorable-text", ""],
    ["unstorable-text", "consumerPhone"],
    ["unstorable-text", ""],
    ["unstorable-text", ""],
  ]);
});

test("a payload without them is left alone", () => {
  const payload = { [trip]: "T", a: ["😀", { b: "\u0001" }] };
  expect(replaceIn(payload)).toEqual({ payload, hasEqualNames: false, paths: [], warnings: [] });
});

test("a payload with too many values, which is refused anyway, is left alone", () => {
  const list = Array.from({ length: maxJsonValues - 3 }, () => "\0");
  expect(replaceIn({ [trip]: "T", list: [...list, "\0"] })).toMatchObject({
    payload: { list: [...list, "\0"] },
    paths: [],
  });
  expect(replaceIn({ [trip]: "T", list: [...list] }).payload).toMatchObject({ list: list.map(() => "\ufffd") });
});

test.each([
  [
    { [trip]: "T\0", [consumer]: "C\0" },
    { [trip]: "T\0", [consumer]: "C\ufffd" },
  ],
  [
    { [trip]: "\u200b ", [consumer]: "C\0" },
    { [trip]: "\u200b ", [consumer]: "C\0" },
  ],
  [{ [consumer]: "C\0" }, { [consumer]: "C\0" }],
  [
    { [trip]: 7, [consumer]: "C\0" },
    { [trip]: 7, [consumer]: "C\ufffd" },
  ],
])("the text that identifies the booking is left for the validator: %j", (payload, expected) => {
  expect(replaceIn(payload).payload).toEqual(expected);
});

test.each([[{ "a\0": 1, "a\ufffd": 2 }], [{ "a\ud800": 1, "a\udc00": 2 }], [{ x: [{ "a\0": 1, "a\ufffd": 2 }] }]])(
  "names that become equal are noticed: %j",
  (payload) => {
    expect(replaceIn(payload).hasEqualNames).toBe(true);
  },
);

test("__proto__ stays an ordinary name", () => {
  const payload = JSON.parse('{"__proto__":{"a":"\\u0000"},"b\\u0000":1}');
  replaceIn(payload);
  expect(JSON.stringify(payload)).toBe('{"__proto__":{"a":"\ufffd"},"b\ufffd":1}');
});

test("no more is said than an answer holds, and no path has a long name or half of a pair", () => {
  const names = Array.from({ length: 60 }, (_, index) => [`${"n".repeat(300)}${index}`, "\0"]);
  const { paths } = replaceIn(Object.fromEntries(names));
  expect(paths).toHaveLength(maxWarnings);
  expect(paths[0]).toEqual([`${"n".repeat(255)}…`]);
});

test("of too many places, those in listed fields are told", () => {
  const others = Array.from({ length: 60 }, (_, index) => [`other${index}`, "\0"]);
  const { paths } = replaceIn({ ...Object.fromEntries(others), consumerGivenName: "\0", agentGivenName: "\0" });
  expect(paths).toHaveLength(maxWarnings);
  expect(paths.slice(0, 3)).toEqual([["consumerGivenName"], ["agentGivenName"], ["other0"]]);
});

test("what is nested too deep to be accepted takes no stack", () => {
  const depth = 30_000;
  const deep = JSON.parse(`{"a":${"[".repeat(depth)}"\\u0000"${"]".repeat(depth)}}`);
  expect(replaceIn(deep).paths).toEqual([]);
});

test("nothing that a database can't store is left", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "\0", "\ud800", "\udc00", "\ufffd"), maxLength: 3 });
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof({ maxDepth: 4 }, text, fc.integer(), fc.array(tie("value")), fc.dictionary(text, tie("value"))),
  }));
  fc.assert(
    fc.property(fc.dictionary(text, value, { noNullPrototype: true }), (fields) => {
      const before = JSON.stringify(fields);
      const { payload, hasEqualNames } = replaceIn(fields);
      fc.pre(!hasEqualNames);
      expect(JSON.stringify(payload)).toBe(before.replaceAll(/\\u(?:0000|d800|dc00)/g, "\ufffd"));
    }),
  );
});
