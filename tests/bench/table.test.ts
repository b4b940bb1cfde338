import { expect, test } from "vitest";
import { formatTable } from "./table.ts";

test("a table is Markdown with its columns in line", () => {
  const rows = [
    ["ours", "9,800"],
    ["textbook", "5,700"],
  ];
  expect(formatTable(["", "events/s"], rows)).toBe(
    [
      "|          | events/s |", // The first column has no title.
      "| -------- | -------: |",
      "| ours     |    9,800 |",
      "| textbook |    5,700 |",
    ].join("\n"),
  );
});

test("a row with too few cells is filled up", () => {
  expect(formatTable(["a", "b"], [["x"]])).toBe("| a   |   b |\n| --- | --: |\n| x   |     |");
});
