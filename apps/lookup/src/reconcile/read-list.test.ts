import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { Pace, Refusal } from "@booking-events/http";
import { describe, expect, test } from "vitest";
import { type ListedReference, listLimits, readList } from "./read-list.ts";

/** A request whose body arrives in these chunks. */
function requestOf(chunks: (Buffer | string)[]): IncomingMessage {
  const req = new IncomingMessage(new Socket());
  for (const chunk of chunks) req.push(chunk);
  req.push(null);
  return req;
}

async function read(chunks: (Buffer | string)[], limits = listLimits): Promise<ListedReference[][]> {
  const pages = [];
  for await (const page of readList(requestOf(chunks), limits)) pages.push(page);
  return pages;
}

async function refusalOf(chunks: (Buffer | string)[], limits = listLimits): Promise<string> {
  const error = await read(chunks, limits).catch((thrown) => thrown);
  expect(error).toBeInstanceOf(Refusal);
  return `${error.answer.status} ${JSON.parse(error.answer.body).message}`;
}

const digest = "0123456789abcdef".repeat(4);

test("lines may end anywhere in a chunk, be empty, and lack the last newline", async () => {
  const text = `{"reference":"A"}\r\n\n{"reference":"Zoë 💩","digest":"${digest.toUpperCase()}"}\n{"referenceKind":"consumer","reference":" C\u200b"}`;
  const expected = [
    { reference: "A", written: "A", referenceKind: "trip", digest: undefined },
    { reference: "Zoë 💩", written: "Zoë 💩", referenceKind: "trip", digest },
    { reference: "C", written: " C\u200b", referenceKind: "consumer", digest: undefined },
  ];
  const bytes = Buffer.from(text);
  expect(await read([bytes])).toEqual([expected]);
  expect(await read(Array.from(bytes, (byte) => Buffer.from([byte])))).toEqual([expected]);
  expect(await read([])).toEqual([]);
  expect(await read(['\ufeff{"reference":"A"}'])).toEqual([
    [{ reference: "A", written: "A", referenceKind: "trip", digest: undefined }],
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
    ["a misspelt name", '{"reference":"A","Digest":"ab"}', "only reference, referenceKind and digest are allowed."],
    ["invalid UTF-8", Buffer.from([0x22, 0xff, 0x22]), "it is not valid UTF-8."],
    ["a long line", "x".repeat(16_385), "it is longer than 16384 bytes."],
  ])("%s", async (_what, line, problem) => {
    const expected = `400 Line 3 of the list is invalid: ${problem}`;
    expect(await refusalOf([good, line])).toBe(expected);
    expect(await refusalOf([good, line, "\n", good])).toBe(expected);
  });

  test("a long reference is accepted, however it is escaped", async () => {
    const escaped = "\\u00e9".repeat(2_700);
    const [[longest] = []] = await read([`{"reference":"${escaped}"}`]);
    expect(longest?.reference).toBe("é".repeat(2_700));
  });
});

describe("a list that arrives too slowly", () => {
  const pace = () => new Pace({ graceMs: 50, bytesPerSecond: 1_000_000 });

  async function answerTo(req: IncomingMessage): Promise<number> {
    try {
      for await (const _page of readList(req, listLimits, pace()));
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

  test("is not one that is read slowly", async () => {
    const lines = Array.from({ length: 5_000 }, (_, index) => `{"reference":"N${index}"}\n`).join("");
    let pages = 0;
    for await (const _page of readList(requestOf([lines]), listLimits, pace())) {
      await new Promise((resolve) => setTimeout(resolve, 30));
      pages += 1;
    }
    expect(pages).toBe(5);
  });
});

test("a list that is too long is refused", async () => {
  const limits = { ...listLimits, maxLines: 2 };
  expect(await read(['{"reference":"A"}\n{"reference":"B"}\n'], limits)).toHaveLength(1);
  expect(await refusalOf(['{"reference":"A"}\n{"reference":"B"}\n{"reference":"C"}'], limits)).toBe(
    "413 The list has more than 2 lines.",
  );
  expect(await refusalOf(["\n".repeat(4)], limits)).toBe("413 The list has more than 2 lines.");
});
