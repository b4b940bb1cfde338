import { Refusal } from "@booking-events/http";
import { ExactNumber, maxJsonValues } from "@booking-events/schema";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import * as body from "./decode-body.ts";

const decodeJson = (text: string) => body.decodeJson(Buffer.from(text)).object;
const decodeForm = (text: string) => body.decodeForm(Buffer.from(text)).object;

describe("UTF-8", () => {
  test("is decoded unchanged", () => {
    const text = "Zoë 東京 👩‍👩‍👧 \u0000 \u00a0\ufeffx";
    expect(decodeJson(JSON.stringify({ text }))).toEqual({ text });
    expect(decodeForm(`text=${text}`)).toEqual({ text });
  });

  test("may start with a byte order mark, which is not part of the text", () => {
    expect(decodeJson('\ufeff{"a":"b"}')).toEqual({ a: "b" });
    expect(decodeForm("\ufeffa=b")).toEqual({ a: "b" });
    for (const empty of ["", "\ufeff"]) expect([decodeJson(empty), decodeForm(empty)]).toEqual([{}, {}]);
  });

  test.each([
    ["a lone continuation byte", [0x80]],
    ["a truncated sequence", [0xe2, 0x82]],
    ["an overlong slash", [0xc0, 0xaf]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
    ["beyond Unicode", [0xf4, 0x90, 0x80, 0x80]],
    ["Latin-1", [...Buffer.from("Zoë", "latin1")]],
    ["UTF-16", [...Buffer.from("\ufeff{}", "utf16le")]],
  ])("with %s is refused", (_what, bytes) => {
    expect(outcomeOf(() => body.decodeJson(Uint8Array.from(bytes)))).toBe("invalid-utf8");
    expect(outcomeOf(() => body.decodeForm(Uint8Array.from(bytes)))).toBe("invalid-utf8");
  });
});

test("the names of a body do not depend on those of earlier bodies", () => {
  for (const earlier of ['{"a":"b","x\\\\":"c"}', '{"a":0,"x\\\\":0}']) decodeJson(earlier);

  expect(decodeJson('{"a":"b","x\\"":"c"}')).toEqual({ a: "b", 'x"': "c" });
  expect(decodeJson('{"a":0,"x\\n":0}')).toEqual({ a: 0, "x\n": 0 });
  expect(decodeForm("a=b&x%22=c")).toEqual({ a: "b", 'x"': "c" });
});

describe("JSON", () => {
  test("keeps every key as the object's own, whatever its name", () => {
    const object = decodeJson('{"__proto__": {"isAdmin": true}, "constructor": 1, "a.b": null, "a[b]": []}');
    expect(Object.keys(object)).toEqual(["__proto__", "constructor", "a.b", "a[b]"]);
    expect(object["isAdmin"]).toBeUndefined();
    expect(JSON.stringify(object)).toBe('{"__proto__":{"isAdmin":true},"constructor":1,"a.b":null,"a[b]":[]}');
  });

  test("is kept as it came if JSON.stringify would write the same", () => {
    const { object, json } = body.decodeJson(Buffer.from('{"a":"Zoë","b":null,"__proto__":"c"}'));
    expect(json).toBe(JSON.stringify(object));
    const otherOrder = '{"b":"x","1":"y"}';
    expect(body.decodeJson(Buffer.from(otherOrder)).json).toBe(otherOrder);
    for (const text of ['{"a": "b"}', '{"a":"\\u0000"}', '{"a":"\\/"}', '{"a":1}', '{"a":["b"]}', ""])
      expect(body.decodeJson(Buffer.from(text)).json, text).toBeUndefined();
  });

  test.each(["{", '{"a":1,}', "{'a':1}", '{"a":1} x', " ", "undefined", '{"a":NaN}', '{"a":"\n"}', "a=1"])(
    "%j is malformed",
    (text) => expect(outcomeOf(() => decodeJson(text))).toBe("malformed-json"),
  );

  test.each([
    ['{"a":1,}', 1, 8],
    ['{\n  "a": "x\n', 2, 10],
    ["  ", 1, 3],
  ])("%j is malformed at line %i, column %i", (text, line, column) => {
    const message = `The body is not valid JSON. The error is at line ${line}, column ${column}.`;
    expect(JSON.parse(refusalOf(() => decodeJson(text)).answer.body)).toMatchObject({ message });
  });

  test.each([
    '{"a":"1","a":"1"}',
    '{"":0,"":0}',
    // No field is shorter than the one lost here.
    '{"":0,"":"text"}',
    '{"":"","":""}',
    '{ "a" : 1 , "\\u0061" : 2 }',
    '{"a":"x\\"y","b":[{"c":null,"c":null}]}',
    '{"a":{"a":[]},"a":{"a":[]}}',
    '{"__proto__":1,"__proto__":2}',
  ])("with a duplicate key is refused: %s", (text) => {
    expect(outcomeOf(() => decodeJson(text))).toBe("repeated-json-key");
  });

  test("with a duplicate key at any depth is refused", () => {
    const text = `{"x":${"[".repeat(20_000)}{"a":1,"a":2}${"]".repeat(20_000)}}`;
    expect(outcomeOf(() => decodeJson(text))).toBe("repeated-json-key");
  });

  test("has all digits of each number that a double would change", () => {
    const exact = ["0.1234567890123456789", "1e-400", "1.00000000000000001"].map((digits) => new ExactNumber(digits));
    const numbers = [0.1, 10.5, 1, -0, 100, 123456789012345, ...exact];
    const text = '{"a":[0.1,10.50,1.0,-0,1.0e2,123456789012345,0.1234567890123456789,1e-400,1.00000000000000001]}';
    expect(decodeJson(text)).toEqual({ a: numbers });
    expect(decodeJson('{"a":"x","b":9007199254740993}')).toEqual({
      ...{ a: "x", b: new ExactNumber("9007199254740993") },
    });
    expect(decodeJson('{"a":1E-400}')).toEqual({ a: new ExactNumber("1E-400") });
  });

  test.each(["[]", '[{"a":1}]', "null", "true", "1", '"{}"'])("%s is not an object", (text) => {
    expect(outcomeOf(() => decodeJson(text))).toBe("not-an-object");
  });

  test("a refusal contains nothing of the body", () => {
    const refusal = refusalOf(() => decodeJson('{"consumerGivenName": "canary-7ab"'));
    expect(`${refusal.message} ${refusal.stack} ${refusal.cause} ${JSON.stringify(refusal)}`).not.toContain("canary");
  });
});

describe("a form", () => {
  test.each([
    ["a=1&b=2", { a: "1", b: "2" }],
    ["a=b+c%20d%2Be", { a: "b c d+e" }],
    ["a+b=1", { "a b": "1" }],
    ["a.b=1", { "a.b": "1" }],
    ["name=Zo%C3%AB&city=東京", { name: "Zoë", city: "東京" }],
    ["a=x=y==", { a: "x=y==" }],
    ["a&b=", { a: "", b: "" }],
    ["&a=1&&b=2&", { a: "1", b: "2" }],
    ["a=%00", { a: "\u0000" }],
    ["A=1&a=2", { A: "1", a: "2" }],
    ["a;b=1", { "a;b": "1" }],
    ["=1", { "": "1" }],
    ["a%26b=c%3Dd%26", { "a&b": "c=d&" }],
    ["a=%2b%2B+", { a: "++ " }],
    ["a=[b]", { a: "[b]" }],
    ["", {}],
  ])("%s is a flat object", (text, fields) => {
    expect({ ...decodeForm(text) }).toEqual(fields);
  });

  test("has the fields that URLSearchParams reads, however they are encoded", () => {
    const separators = ["&", "&", "&", "=", "=", "+", "%26", "%3d", "%3D", "%2B", "%25", "%20"];
    const characters = [
      "a",
      "b",
      "é",
      "%C3%AB",
      "%F0%9F%98%80",
      '"',
      "%22",
      "\\",
      "%5c",
      "%1f",
      "%7F",
      "%0A",
      "\u007f",
      "[",
    ];
    const piece = fc.constantFrom(...separators, ...characters);
    let decodedAsJson = 0;
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join("");
        const names = [...new URLSearchParams(text).keys()];
        fc.pre(new Set(names).size === names.length && !names.some((name) => name.includes("[")) && !/^\[/.test(text));

        const { object, json = JSON.stringify(object) } = body.decodeForm(Buffer.from(text));

        expect(object).toEqual(Object.fromEntries(new URLSearchParams(text)));
        expect(json).toBe(JSON.stringify(object));
        if (body.decodeForm(Buffer.from(text)).json !== undefined) decodedAsJson += 1;
      }),
      { numRuns: 3_000 },
    );
    expect(decodedAsJson).toBeGreaterThan(50);
  });

  test("becomes JSON if it is ordinary", () => {
    const ordinary = "a=[b]&name=Zo%C3%AB&city=東京&phone=%2b44+1&hotel=B%26B%3d&note=%22x%22%0D%0a%09%5C";
    const fields = { a: "[b]", name: "Zoë", city: "東京", phone: "+44 1", hotel: "B&B=", note: '"x"\r\n\t\\' };
    expect(body.decodeForm(Buffer.from(ordinary))).toEqual({ object: fields, json: JSON.stringify(fields) });
    for (const other of ["a", "a=1&", "a=%01", "a=%08", ...manyNames(maxJsonValues)])
      expect(body.decodeForm(Buffer.from(other)).json, other.slice(0, 9)).toBeUndefined();
  });

  test.each([
    ["names without a letter", `${"=&".repeat(1_500)}=`],
    ["characters that JSON escapes", `a=${'"'.repeat(60_000)}`],
    ["many names", manyNames(1_900)[0] ?? ""],
  ])("is decoded completely, however long its JSON is: %s", async (_, text) => {
    vi.resetModules();
    const { decodeForm: decodeFirst } = await import("./decode-body.ts");
    const names = [...new URLSearchParams(text).keys()];
    if (new Set(names).size < names.length)
      expect(() => decodeFirst(Buffer.from(text))).toThrow(expect.objectContaining({ outcome: "repeated-form-field" }));
    else
      expect(decodeFirst(Buffer.from(text)).json).toBe(JSON.stringify(Object.fromEntries(new URLSearchParams(text))));
  });

  test("may escape only some bytes of a character, as in the URL standard", () => {
    const bytes = Buffer.concat([Buffer.from("a=%C3"), Buffer.from([0xa9]), Buffer.from("&b=1")]);
    expect(body.decodeForm(bytes).object).toEqual({ a: "é", b: "1" });
  });

  test("keeps fields named like members of Object.prototype", () => {
    const fields = decodeForm("__proto__=1&constructor=2");
    expect(Object.entries(fields)).toEqual([
      ["__proto__", "1"],
      ["constructor", "2"],
    ]);
  });

  test("keeps each of 5,000 fields", () => {
    const names = Array.from({ length: 5_000 }, (_, index) => `f${index}`);
    expect(Object.keys(decodeForm(names.map((name) => `${name}=1`).join("&")))).toEqual(names);
  });

  test.each([
    ["a=1&a=2", "repeated-form-field"],
    ["a=1&%61=1", "repeated-form-field"],
    ["__proto__=1&__proto__=2", "repeated-form-field"],
    ["a[]=1", "nested-form-field"],
    ["a[b]=1", "nested-form-field"],
    ["a%5Bb%5D=1", "nested-form-field"],
    ["a]=1", "nested-form-field"],
    ["a[b=1", "nested-form-field"],
    ["a%5Bb=1", "nested-form-field"],
    ["a=%", "malformed-form"],
    ["a=%4", "malformed-form"],
    ["a=%zz", "malformed-form"],
    ["%E0%A4%A=1", "malformed-form"],
    ["a=%FF", "malformed-form"],
    ["a=%ED%A0%80", "malformed-form"],
    ["=1&=2", "repeated-form-field"],
    ['{"a":1}', "json-sent-as-form"],
    ["{", "json-sent-as-form"],
    ["[1]", "json-sent-as-form"],
    ['{"a":"x=y"}', "json-sent-as-form"],
    ["{=1", "json-sent-as-form"],
    ["[a=1", "json-sent-as-form"],
    ["a=1&a=2&b=%", "malformed-form"],
    ["[a]=1", "json-sent-as-form"],
    ["\ufeff\ufeffa=1", "repeated-byte-order-mark"],
    ['a=1&b="x"&a=2', "repeated-form-field"],
  ])("%s is refused", (text, outcome) => {
    expect(outcomeOf(() => decodeForm(text))).toBe(outcome);
  });
});

function manyNames(count: number): [string] {
  return [Array.from({ length: count }, (_, index) => `f${index}=`).join("&")];
}

function outcomeOf(decode: () => unknown): string {
  return refusalOf(decode).outcome;
}

function refusalOf(decode: () => unknown): Refusal {
  try {
    decode();
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
  throw new Error("It was not refused");
}
