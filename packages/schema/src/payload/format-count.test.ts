import { expect, test } from "vitest";
import { formatCount } from "./format-count.ts";

test.each([0, 7, 999, 1_000, 65_536, 1_000_000, Number.MAX_SAFE_INTEGER])(
  "%i has commas between thousands",
  (count) => {
    expect(formatCount(count)).toBe(count.toLocaleString("en"));
  },
);
