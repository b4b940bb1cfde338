import { expect, test } from "vitest";
import { readName } from "./read-name.ts";

test.each(["ada@example.com", "Ada O'Brien", "<b>Ada</b>", "Zoë Müller", "王小明"])("%s is a name", (name) => {
  expect(readName(name)).toBe(name);
});

test.each([
  ["that turns text around", "ada\u202emoc.elpmaxe"],
  ["with an isolate", "ada\u2066"],
  ["that can't be told from another", "ada\u200b"],
  ["with a line break", "ada\nbob"],
  ["with an escape of terminals", "ada\u001b[2J"],
  ["with a separator of lines", "ada\u2028bob"],
  ["with half of a character", "ada\ud800"],
  ["with space around it", " ada"],
  ["that is empty", ""],
  ["that is very long", "a".repeat(201)],
  ["that is no text", ["ada"]],
  ["that is missing", undefined],
])("a name %s is none", (_, name) => {
  expect(readName(name)).toBeUndefined();
});
