import { expect, test } from "vitest";
import { LineSplitter } from "./split-lines.ts";

/** The lines of a body that arrives in chunks of this size. */
function split(body: string, chunkBytes: number, maxLineBytes = 5): [number, string | undefined][] {
  const splitter = new LineSplitter(maxLineBytes);
  const bytes = Buffer.from(body);
  const lines: [number, string | undefined][] = [];
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    const found = [...splitter.split(bytes.subarray(at, at + chunkBytes))];
    lines.push(...found.map(({ number, bytes }): [number, string | undefined] => [number, bytes?.toString()]));
  }
  return lines;
}

test.each([1, 2, 3, 5, 7, 100])("lines are the same in chunks of %i bytes", (chunkBytes) => {
  expect(split("a\n\nbcdef\nghijkl\nm\r\n\nnopqrstuvwxyz\nopqrs\r\ntuvw\rx\nend\n", chunkBytes)).toEqual([
    [1, "a"],
    [3, "bcdef"],
    [4, undefined],
    [5, "m\r"],
    [7, undefined],
    [8, "opqrs\r"],
    [9, undefined],
    [10, "end"],
  ]);
});

test("a line that is too long is known before it ends, once", () => {
  const splitter = new LineSplitter(5);
  const next: number[] = [];
  const lines = ["abc", "def", "ghi", "j\nk\n"].map((chunk) => {
    const found = [...splitter.split(Buffer.from(chunk))];
    next.push(splitter.number);
    return found;
  });
  // It has its answer, so an error while its rest arrives is the next one's.
  expect(next).toEqual([1, 2, 2, 3]);
  expect(lines.map((each) => each.map(({ number, bytes }) => [number, bytes?.toString()]))).toEqual([
    [],
    [[1, undefined]],
    [],
    [[2, "k"]],
  ]);
});

test("lines of one chunk stay as they are while the next ones arrive", () => {
  const splitter = new LineSplitter(5);
  const [first] = [...splitter.split(Buffer.from("ab")), ...splitter.split(Buffer.from("c\nde"))];
  const [second] = splitter.split(Buffer.from("f\n"));
  expect([first?.bytes?.toString(), second?.bytes?.toString()]).toEqual(["abc", "def"]);
});
