import { randomRuns } from "@booking-events/harness/random-runs";
import { Refusal } from "@booking-events/http";
import { ExactNumber, maxJsonValues } from "@booking-events/schema";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import type { ContentType } from "./content-type.ts";
import * as body from "./decode-body.ts";

const asJson = (bytes: Uint8Array) => body.decodeBody(bytes, { format: "json" });
const asForm = (bytes: Uint8Array) => body.decodeBody(bytes, { format: "form" });
const decodeJson = (text: string) => asJson(Buffer.from(text)).object;
const decodeForm = (text: string) => asForm(Buffer.from(text)).object;

describe("UTF-8", () => {
  test("is decoded unchanged", () => {
    const text = "Zoë 東京 👩‍👩‍👧 \u0001 \u00a0\ufeffx";
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
    expect(outcomeOf(() => asJson(Uint8Array.from(bytes)))).toBe("invalid-utf8");
    expect(outcomeOf(() => asForm(Uint8Array.from(bytes)))).toBe("invalid-utf8");
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
    const { object, json } = asJson(Buffer.from('{"a":"Zoë","b":null,"__proto__":"c"}'));
    expect(json).toBe(JSON.stringify(object));
    const otherOrder = '{"b":"x","1":"y"}';
    expect(asJson(Buffer.from(otherOrder)).json).toBe(otherOrder);
    for (const text of ['{"a": "b"}', '{"a":"\\u0000"}', '{"a":"\\/"}', '{"a":1}', '{"a":["b"]}', ""])
      expect(asJson(Buffer.from(text)).json, text).toBeUndefined();
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
    const message = `The event is not valid JSON. The error is at line ${line}, column ${column}.`;
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
    ["a=%01", { a: "\u0001" }],
    ["a[]=1&a[b]=2&c]=%5B", { "a[]": "1", "a[b]": "2", "c]": "[" }],
    ["[a=1", { "[a": "1" }],
    ["a=1&b=1&a=2&%61=", { a: ["1", "2", ""], b: "1" }],
    ["=1&=2", { "": ["1", "2"] }],
    ["a=%", { a: "%" }],
    ["a=%4&b=%zz%&c%=%%41", { a: "%4", b: "%zz%", "c%": "%A" }],
    ["a=1\r\n", { a: "1" }],
    ["a=%0A\n\n", { a: "\n" }],
    ["a\n", { a: "" }],
    ["\n", {}],
    ["a=1\nb", { a: "1\nb" }],
    ["&amp;a=1", { "amp;a": "1" }],
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
      "%",
      "{",
    ];
    const piece = fc.constantFrom(...separators, ...characters);
    let decodedAsJson = 0;
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join("");
        fc.pre(!/^[ \t\r\n]*\{/.test(text) && !JSON.stringify(fieldsOf(text)).includes("\ufffd"));

        const { object, json = JSON.stringify(object) } = asForm(Buffer.from(text));

        expect(object).toEqual(fieldsOf(text));
        expect(json).toBe(JSON.stringify(object));
        if (asForm(Buffer.from(text)).json !== undefined) decodedAsJson += 1;
      }),
      randomRuns(1_000),
    );
    expect(decodedAsJson).toBeGreaterThan(10);
  });

  test("becomes JSON if it is ordinary", () => {
    const ordinary = "a=[b]&name=Zo%C3%AB&city=東京&phone=%2b44+1&hotel=B%26B%3d&note=%22x%22%0D%0a%09%5C";
    const fields = { a: "[b]", name: "Zoë", city: "東京", phone: "+44 1", hotel: "B&B=", note: '"x"\r\n\t\\' };
    expect(asForm(Buffer.from(ordinary))).toEqual({ object: fields, json: JSON.stringify(fields), warnings: [] });
    for (const other of ["a", "a=1&", "a=%01%08%1f", "a[b]=%&&=", ...manyNames(maxJsonValues)]) {
      const { object, json } = asForm(Buffer.from(other));
      expect(json, other.slice(0, 9)).toBe(JSON.stringify(object));
    }
    for (const other of ["a=1&a=2", "a=%00"]) expect(asForm(Buffer.from(other)).json, other).toBeUndefined();
  });

  test.each([
    ["names without a letter", `${"=&".repeat(1_500)}=`],
    ["characters that JSON escapes", `a=${'"'.repeat(60_000)}`],
    ["many names", manyNames(1_900)[0] ?? ""],
  ])("is decoded completely, however long its JSON is: %s", async (_, text) => {
    vi.resetModules();
    const { decodeBody } = await import("./decode-body.ts");
    const decodeFirst = (bytes: Uint8Array) => decodeBody(bytes, { format: "form" });
    expect(decodeFirst(Buffer.from(text)).object).toEqual(fieldsOf(text));
  });

  test("may escape only some bytes of a character, as in the URL standard", () => {
    const bytes = Buffer.concat([Buffer.from("a=%C3"), Buffer.from([0xa9]), Buffer.from("&b=1")]);
    expect(asForm(bytes).object).toEqual({ a: "é", b: "1" });
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
    ["consumerPhone=1&consumerPhone=1", "repeated-form-field"],
    ["consumerPhone=1&x=%&consumer%50hone=", "repeated-form-field"],
    ["%E0%A4%A=1", "invalid-utf8"],
    ["a=%FF", "invalid-utf8"],
    ["a=%ED%A0%80", "invalid-utf8"],
    ["\ufeff\ufeffa=1", "repeated-byte-order-mark"],
    ["a%00=1&a%EF%BF%BD=2", "equal-names"],
    ["{", "wrong-content-type"],
    ["{=1", "wrong-content-type"],
    ['{"a":1}=&b=1', "wrong-content-type"],
    ['{"a":1,"a":2}', "repeated-json-key"],
  ])("%s is refused", (text, outcome) => {
    expect(outcomeOf(() => decodeForm(text))).toBe(outcome);
  });

  test("may repeat a name as often as its size allows", () => {
    const repeated = Array.from({ length: 32_000 }, () => "a").join("&");
    expect(decodeForm(repeated)).toEqual({ a: Array(32_000).fill("") });
    const names = Array.from({ length: 2_000 }, (_, index) => `f${index}`);
    const twice = [...names, ...names].map((name) => `${name}=1`).join("&");
    expect(decodeForm(twice)).toEqual(Object.fromEntries(names.map((name) => [name, ["1", "1"]])));
  });
});

describe("JSON that is declared as something else, or not at all", () => {
  const undeclared: ContentType[] = [{ format: "form" }, { format: "unknown" }, { format: "form", charset: "utf-8" }];
  const warning = { message: expect.any(String), code: "wrong-content-type", propertyPath: [], field: "" };

  test("is read if it begins like an object, with a warning", () => {
    for (const type of undeclared)
      for (const text of ['{"a":"b=c&d"}', '\ufeff{ "a": "b=c&d" }', '\r\n {"a":"b=c&d"}\n']) {
        expect(body.decodeBody(Buffer.from(text), type)).toMatchObject({ object: { a: "b=c&d" }, warnings: [warning] });
      }
  });

  test("is refused if it is no JSON, and the message says which header to set", () => {
    for (const type of undeclared)
      for (const text of ["{", '{"a":1}&b=1', "{a=1"]) {
        const { answer, outcome } = refusalOf(() => body.decodeBody(Buffer.from(text), type));
        expect([outcome, answer.status, answer.body]).toEqual([
          ...["wrong-content-type", 400, expect.stringContaining("Content-Type: application/json")],
        ]);
      }
  });

  test("is a form if it is none, and begins with white space", () => {
    const bytes = Buffer.from(" \n{x=1&a=2");
    expect(asForm(bytes)).toEqual({ object: { " \n{x": "1", a: "2" }, json: expect.any(String), warnings: [] });
    expect(outcomeOf(() => body.decodeBody(bytes, { format: "unknown" }))).toBe("wrong-content-type");
  });

  test("of a form's charset has no escapes of a form", () => {
    const { object } = body.decodeBody(Buffer.from('{"a":"100%E9\u00eb"}', "latin1"), {
      ...{ format: "form", charset: "windows-1252" },
    });
    expect(object).toEqual({ a: "100%E9ë" });
  });

  test("is not looked for in other texts without a type", () => {
    for (const text of ["a=1", "[]", " ", '"a"', "null"])
      expect(outcomeOf(() => body.decodeBody(Buffer.from(text), { format: "unknown" }))).toBe("unsupported-type");
    for (const text of ["", "\ufeff"])
      expect(body.decodeBody(Buffer.from(text), { format: "unknown" })).toEqual({ object: {}, warnings: [] });
  });
});

describe("a charset that is declared", () => {
  const text = '{"name":"Zoë €"}';
  const form = "name=Zo\u00eb+%80+%u00e9&%E9=%C3%A9";
  const utf16be = (value: string) => Buffer.from(value, "utf16le").swap16();

  test.each<[string, ContentType["charset"], Buffer]>([
    ["windows-1252", "windows-1252", Buffer.from(text.replace("€", "\x80"), "latin1")],
    ["UTF-16 with its mark", "utf-16", Buffer.from(`\ufeff${text}`, "utf16le")],
    ["big-endian UTF-16 with its mark", "utf-16", utf16be(`\ufeff${text}`)],
    ["UTF-16LE", "utf-16le", Buffer.from(text, "utf16le")],
    ["UTF-16LE with a mark, too", "utf-16le", Buffer.from(`\ufeff${text}`, "utf16le")],
    ["UTF-16BE", "utf-16be", utf16be(text)],
  ])("is decoded: %s", (_, charset, bytes) => {
    for (const format of ["json", "form", "unknown"] as const)
      expect(body.decodeBody(bytes, { format, charset: charset ?? "utf-8" }).object).toEqual({ name: "Zoë €" });
  });

  test("is that of a form's escapes, too", () => {
    const { object } = body.decodeBody(Buffer.from(form, "latin1"), { format: "form", charset: "windows-1252" });
    expect(object).toEqual({ name: "Zoë € %u00e9", é: "Ã©" });
  });

  test("does not change the escapes of a form in UTF-16", () => {
    const bytes = Buffer.from("\ufeffname=Zo%C3%AB", "utf16le");
    expect(body.decodeBody(bytes, { format: "form", charset: "utf-16" }).object).toEqual({ name: "Zoë" });
  });

  test.each<[string, ContentType["charset"], Buffer]>([
    ["UTF-16 without its order", "utf-16", Buffer.from(text, "utf16le")],
    ["half of a character", "utf-16le", Buffer.from(`${text}x`, "utf16le").subarray(0, -1)],
    ["half of a surrogate pair", "utf-16le", Buffer.from('{"a":"\ud800"}', "utf16le")],
    ["an empty UTF-16", "utf-16", Buffer.from([])],
  ])("is refused if the bytes are of another one: %s", (what, charset, bytes) => {
    const decode = () => body.decodeBody(bytes, { format: "json", charset: charset ?? "utf-8" });
    if (what.startsWith("an empty")) expect(decode()).toEqual({ object: {}, warnings: [] });
    else expect(outcomeOf(decode)).toBe("invalid-utf16");
  });

  test("is asked for if the bytes are not UTF-8", () => {
    const { answer } = refusalOf(() => asJson(Buffer.from('{"a":"\xeb"}', "latin1")));
    expect(answer.body).toContain("declare its charset");
  });
});

describe("what a database can't store", () => {
  const warned = (...paths: string[][]) =>
    paths.map((propertyPath) => expect.objectContaining({ code: "unstorable-text", propertyPath }));

  test("is replaced in JSON, with a warning", () => {
    const { object, json, warnings } = asJson(Buffer.from('{"a":["x\\u0000","\\ud83d\\ude00"],"b\\udc00":1}'));
    expect(object).toEqual({ a: ["x\ufffd", "😀"], "b\ufffd": 1 });
    expect(json).toBeUndefined();
    expect(warnings).toEqual(warned(["b\ufffd"], ["a", "0"]));
  });

  test("is replaced in a form, with a warning", () => {
    const { object, json, warnings } = asForm(Buffer.from("a=%00&b=1&b=\0"));
    expect(object).toEqual({ a: "\ufffd", b: ["1", "\ufffd"] });
    expect(json).toBeUndefined();
    expect(warnings).toEqual(warned(["a"], ["b", "1"]));
  });
});

/** As URLSearchParams reads it, and with an array for each name that appears twice. */
function fieldsOf(form: string): Record<string, string | string[]> {
  // Node reads a character outside of ASCII wrongly if a percent sign begins no escape.
  const parameters = new URLSearchParams(form.replace(/[^\0-\x7f]/gu, encodeURIComponent));
  return Object.fromEntries(
    [...new Set(parameters.keys())].map((name) => {
      const values = parameters.getAll(name);
      return [name, values.length === 1 ? (values[0] ?? "") : values];
    }),
  );
}

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
