import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const packageDirectory = new URL("../", import.meta.url);
const readme = readFileSync(new URL("README.md", packageDirectory), "utf8");

const examples = Array.from(
  readme.matchAll(/## (?<title>[^\n]+)\n(?:(?!## ).)*?```ts\n(?<code>.*?)```\n\n```text\n(?<output>.*?)```/gs),
  ({ groups: { title = "", code = "", output = "" } = {} }) => ({ title, code, output }),
);

test.each(examples)("the README's example prints the stated output: $title", ({ code, output }) => {
  const printed = execFileSync(
    process.execPath,
    ["--conditions=@booking-events/source", "--input-type=module-typescript", "--eval", code],
    { cwd: packageDirectory, encoding: "utf8" },
  );

  expect(printed).toBe(output);
});

test("every code block in the README is tested", () => {
  expect(examples).toHaveLength(readme.split("```ts\n").length - 1);
  expect(examples).toHaveLength(2);
});
