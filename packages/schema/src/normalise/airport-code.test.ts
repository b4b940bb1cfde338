import { expect, test } from "vitest";
import { readAirportCode } from "./airport-code.ts";

test.each([
  ["LHR", "LHR"],
  ["lhr", "LHR"],
  [" LHR\n", "LHR"],
  ["ZZZ", "ZZZ"],
])("%j is %s", (sent, code) => {
  expect(readAirportCode(sent)).toBe(code);
});

test.each(["", " ", "LH", "EGLL", "L1R", "ÅLB", "L R", "London", "LHR, LGW"])("%j is no airport code", (sent) => {
  expect(readAirportCode(sent)).toBeUndefined();
});
