import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { Pace, Refusal } from "@booking-events/http";
import { describe, expect, test } from "vitest";
import { type ListedReference, listLimits, readList } from "./read-list.ts";
import { WrongLines } from "./wrong-lines.ts";

/** A request whose body arrives in these chunks. */
function requestOf(chunks: (Buffer | string)[]): IncomingMessage {
  const req = new IncomingMessage(new Socket());
  for (const chunk of chunks) req.push(chunk);
  req.push(null);
  return req;
}

async function read(chunks: (Buffer | string)[], limits = listLimits): Promise<ListedReference[][]> {
  const pages = [];
  const wrong = new WrongLines();
  for await (const page of readList(requestOf(chunks), wrong, limits)) pages.push(page);
  wrong.refuse();
  return pages;
}

async function refusalOf(chunks: (Buffer | string)[], limits = listLimits) {
  const error = await read(chunks, limits).catch((thrown) => thrown);
  expect(error).toBeInstanceOf(Refusal);
  const { status, body } = error.answer;
  return { status, ...JSON.parse(body) };
}

const digest = "0123456789abcdef".repeat(4);

test("lines may end anywhere in a chunk, be empty, and lack the last newline", async () => {
  const text = `{"reference":"A"}\r\n\n{"reference":"Zoë 💩","digest":"${digest.toUpperCase()}"}\n{"referenceKind":"consumer","reference":" C\u200b"}`;
  const expected = [
    { line: 1, reference: "A", written: "A", referenceKind: "trip", digest: undefined },
    { line: 3, reference: "Zoë 💩", written: "Zoë 💩", referenceKind: "trip", digest },
    { line: 4, reference: "C", written: " C\u200b", referenceKind: "consumer", digest: undefined },
  ];
  const bytes = Buffer.from(text);
  expect(await read([bytes])).toEqual([expected]);
  expect(await read(Array.from(bytes, (byte) => Buffer.from([byte])))).toEqual([expected]);
  expect(await read([])).toEqual([]);
  expect(await read(['{"reference":"A","yours":{"id":[7]}}'])).toMatchObject([[{ reference: "A" }]]);
  expect(await read(['\ufeff{"reference":"A"}'])).toEqual([
    [{ line: 1, reference: "A", written: "A", referenceKind: "trip", digest: undefined }],
  ]);
});

test("a long list comes in pages", async () => {
  const lines = Array.from({ length: 2_500 }, (_, index) => `{"reference":"N${index}"}\n`).join("");
  const pages = await read([lines]);
  expect(pages.map((page) => page.length)).toEqual([1_000, 1_000, 500]);
  expect(pages.flat().map(({ reference }) => reference)).toEqual(
    Array.from({ length: 2_500 }, (_, index) => `N${index}`),
  );
});

describe("refused with the number of its line", () => {
  const good = '{"reference":"A"}\n\n';

  test.each<[string, string | Buffer, string]>([
    ["JSON that is cut off", '{"reference":', "it is not valid JSON."],
    ["text", "hello", "it is not valid JSON."],
    ["an array", '["A"]', "it is not a JSON object."],
    ["null", "null", "it is not a JSON object."],
    ["no reference", "{}", "reference must be a text of 1 to 8,192 characters."],
    ["an invisible reference", '{"reference":" \u200b"}', "reference must be a text of 1 to 8,192 characters."],
    ["a blank reference", '{"reference":" "}', "reference must be a text of 1 to 8,192 characters."],
    [
      "a long reference",
      JSON.stringify({ reference: "x".repeat(8_193) }),
      "reference must be a text of 1 to 8,192 characters.",
    ],
    ["a number", '{"reference":1}', "reference must be a text of 1 to 8,192 characters."],
    ["U+0000", '{"reference":"\\u0000"}', "reference must be a text of 1 to 8,192 characters."],
    ["half a surrogate pair", '{"reference":"\\ud800"}', "reference must be a text of 1 to 8,192 characters."],
    ["another kind", '{"reference":"A","referenceKind":"agent"}', "referenceKind must be trip or consumer."],
    ["a short digest", '{"reference":"A","digest":"ab"}', "digest must have 64 hexadecimal digits."],
    ["a digest that is null", '{"reference":"A","digest":null}', "digest must have 64 hexadecimal digits."],
    ["a reference twice", '{"reference":"A","reference":"B"}', "it has a duplicate key."],
    ["a reference twice, once as an escape", '{"reference":"A","\\u0072eference":"B"}', "it has a duplicate key."],
    ["invalid UTF-8", Buffer.from([0x22, 0xff, 0x22]), "it is not valid UTF-8."],
    ["a long line", "x".repeat(16_385), "it is longer than 16384 bytes."],
  ])("%s", async (_what, line, problem) => {
    const expected = { status: 400, code: "invalid-list-line", violationList: [{ message: `Line 3: ${problem}` }] };
    expect(await refusalOf([good, line])).toMatchObject(expected);
    expect(await refusalOf([good, line, "\n", good])).toMatchObject(expected);
  });

  test("with the wrong member, and together with other wrong lines, up to 50", async () => {
    const lines = ["x", "[]", "", "{}", '{"reference":"A"}', '{"reference":"A","digest":1}', "x".repeat(100_000), "x"];
    const [malformed, member] = ["malformed", "digest"];
    expect((await refusalOf([lines.join("\n")])).violationList).toMatchObject([
      { code: malformed, propertyPath: ["1"] },
      { code: "not-an-object", propertyPath: ["2"] },
      { code: malformed, propertyPath: ["4", "reference"] },
      { code: malformed, propertyPath: ["6", member] },
      { code: "too-long", propertyPath: ["7"] },
      { code: malformed, propertyPath: ["8"] },
    ]);
    const { violationList } = await refusalOf(["x\n".repeat(60), "\n".repeat(3_000_000)]);
    expect(violationList.map(({ propertyPath: [line] }: { propertyPath: string[] }) => line)).toEqual(
      Array.from({ length: 50 }, (_, index) => String(index + 1)),
    );
  });

  test("a long reference is accepted, however it is escaped", async () => {
    const escaped = "\\u00e9".repeat(2_700);
    const [[longest] = []] = await read([`{"reference":"${escaped}"}`]);
    expect(longest?.reference).toBe("é".repeat(2_700));
  });
});

describe("a list that arrives too slowly", () => {
  const pace = () => new Pace({ graceMs: 50, bytesPerSecond: 1_000_000, inAllMs: 100 });

  async function answerTo(req: IncomingMessage, limited = pace()): Promise<number> {
    try {
      for await (const _page of readList(req, new WrongLines(), listLimits, limited));
      return 200;
    } catch (error) {
      return error instanceof Refusal ? error.answer.status : 500;
    }
  }

  test("is refused, even if it never stops", async () => {
    const [silent, slow] = [new IncomingMessage(new Socket()), new IncomingMessage(new Socket())];
    const timer = setInterval(() => slow.push(" "), 5);
    expect(await Promise.all([answerTo(silent), answerTo(slow)])).toEqual([408, 408]);
    clearInterval(timer);
  });

  test("is refused when all of its sending has taken too long, at whatever rate", async () => {
    const steady = new IncomingMessage(new Socket());
    const timer = setInterval(() => steady.push("\n".repeat(1_000)), 5);
    expect(await answerTo(steady, new Pace({ inAllMs: 100 }))).toBe(408);
    clearInterval(timer);
  });

  test("is not one that is read slowly", async () => {
    const lines = Array.from({ length: 5_000 }, (_, index) => `{"reference":"N${index}"}\n`).join("");
    let pages = 0;
    for await (const _page of readList(requestOf([lines]), new WrongLines(), listLimits, pace())) {
      await new Promise((resolve) => setTimeout(resolve, 30));
      pages += 1;
    }
    expect(pages).toBe(5);
  });
});

test("a list that is too long is refused", async () => {
  const limits = { ...listLimits, maxLines: 2 };
  expect(await read(['{"reference":"A"}\n{"reference":"B"}\n'], limits)).toHaveLength(1);
  const tooLong = { status: 413, message: "The list has more than 2 lines." };
  expect(await refusalOf(['{"reference":"A"}\n{"reference":"B"}\n{"reference":"C"}'], limits)).toMatchObject(tooLong);
  expect(await refusalOf(["\n".repeat(4)], limits)).toMatchObject(tooLong);
});
