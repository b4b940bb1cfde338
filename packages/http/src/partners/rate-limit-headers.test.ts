import { expect, test } from "vitest";
import { describePolicy, describeQuota } from "./rate-limit-headers.ts";

test.each([
  [{ perSecond: 200, burst: 400 }, '"partner";q=400;w=2'],
  [{ perSecond: 200, burst: 100 }, '"partner";q=200;w=1'],
  [{ perSecond: 3, burst: 10 }, '"partner";q=12;w=4'],
  [{ perSecond: 0.5, burst: 1 }, '"partner";q=1;w=2'],
  [{ perSecond: 0.29, burst: 29 }, '"partner";q=29;w=100'],
])("the policy states the sustainable rate in whole requests and seconds: %o", (limit, policy) => {
  expect(describePolicy(limit)).toBe(policy);
});

test("the quota is the number of requests that would be accepted now", () => {
  expect(describeQuota(399, 1)).toBe('"partner";r=399;t=1');
});
