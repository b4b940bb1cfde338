import { expect, test } from "vitest";
import { assignRoles } from "./assign-roles.ts";

const lists = { viewer: ["group:support"], operator: ["ada@example.com", "group:on-call"], privacy: ["group:privacy"] };

test.each([
  ["nobody@example.com", [], []],
  ["nobody@example.com", ["support"], ["viewer"]],
  ["ada@example.com", [], ["viewer", "operator"]],
  ["nobody@example.com", ["privacy", "on-call"], ["viewer", "operator", "privacy"]],
  ["Ada@example.com", ["On-Call", " on-call", "group:on-call"], []],
  // Whoever may choose a name could choose these.
  ["group:on-call", [], []],
  ["support", ["ada@example.com"], []],
])("%s of the groups %j has the roles %j", (name, groups, expected) => {
  expect(assignRoles({ name, groups }, lists)).toEqual(expected);
});
