import { expect, test } from "vitest";
import { readLines } from "./read-lines.ts";

const text = "one\n\nzwölf, 東京\r\nlong-long-long-long-long\nlast";

async function read(chunks: Iterable<Buffer>, maxLineBytes = 20) {
  async function* stream() {
    yield* chunks;
  }
  const lines: [number, string | null][] = [];
  for await (const some of readLines(stream(), maxLineBytes))
    for (const { number, bytes } of some) lines.push([number, bytes?.toString() ?? null]);
  return lines;
}

test.each([1, 2, 3, 7, 1_000])(
  "lines are the same in chunks of %i bytes, and one that is too long is skipped",
  async (size) => {
    const bytes = Buffer.from(text);
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size),
    );
    expect(await read(chunks)).toEqual([
      [1, "one"],
      [2, ""],
      [3, "zwölf, 東京\r"],
      [4, null],
      [5, "last"],
    ]);
  },
);

test("a line feed at the end starts no line, and a line of the greatest length is read", async () => {
  expect(await read([Buffer.from("12345\n")], 5)).toEqual([[1, "12345"]]);
  expect(await read([Buffer.from("12345\n")], 4)).toEqual([[1, null]]);
});

test("a line of any length is not kept in memory", async () => {
  const chunk = Buffer.alloc(65_536, "x");
  function* endless() {
    for (let count = 0; count < 5_000; count += 1) yield chunk;
  }
  const before = process.memoryUsage().arrayBuffers;
  const reading = readLines(
    (async function* () {
      yield* endless();
    })(),
    65_536,
  );
  expect((await reading.next()).value).toEqual([{ number: 1, bytes: null }]);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(150_000_000);
});
