import { answers } from "@booking-events/schema";
import { expect, test, vi } from "vitest";
import { createGuessThrottle, guessLimits } from "./throttle-guessing.ts";

test("an address gets 403 up to the limit and 429 beyond it", () => {
  const answerGuess = createGuessThrottle({ ...guessLimits, refusalsPerWindow: 3 });
  const given = Array.from({ length: 5 }, () => answerGuess("192.0.2.1"));
  expect(given.slice(0, 3)).toEqual([answers.invalidSecret, answers.invalidSecret, answers.invalidSecret]);
  for (const { status, headers } of given.slice(3)) {
    expect(status).toBe(429);
    expect(Number(headers?.["Retry-After"])).toBeGreaterThan(0);
    expect(Number(headers?.["Retry-After"])).toBeLessThanOrEqual(60);
  }
  expect(answerGuess("192.0.2.2")).toBe(answers.invalidSecret);
});

test("Retry-After is never 0, even at the end of a window", () => {
  const clock = vi.spyOn(performance, "now").mockReturnValue(1);
  try {
    const answerGuess = createGuessThrottle({ ...guessLimits, refusalsPerWindow: 1 });
    answerGuess("192.0.2.1");
    clock.mockReturnValue(1 + guessLimits.windowMs);
    expect(answerGuess("192.0.2.1").headers?.["Retry-After"]).toBe("1");
  } finally {
    clock.mockRestore();
  }
});

test.each([
  ["IPv6 addresses of one /64", "2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"],
  ["an IPv6 address in two spellings", "2001:db8::1", "2001:0DB8:0:0:0:0:0:1"],
  ["an IPv4 address and its IPv6 form", "192.0.2.1", "::ffff:192.0.2.1"],
  ["invalid addresses", "unknown", "<script>"],
])("%s count as one sender", (_what, first, second) => {
  const answerGuess = createGuessThrottle({ ...guessLimits, refusalsPerWindow: 1 });
  expect(answerGuess(first).status).toBe(403);
  expect(answerGuess(second).status).toBe(429);
});

test.each([
  ["IPv6 addresses of two /64", "2001:db8:1:2::1", "2001:db8:1:3::1"],
  ["IPv4 clients of a dual-stack socket", "::ffff:192.0.2.1", "::ffff:192.0.2.2"],
])("%s count as two senders", (_what, first, second) => {
  const answerGuess = createGuessThrottle({ ...guessLimits, refusalsPerWindow: 1 });
  expect(answerGuess(first).status).toBe(403);
  expect(answerGuess(second).status).toBe(403);
});

test("the number of addresses is bounded, and the least recently seen one is forgotten", () => {
  const answerGuess = createGuessThrottle({ ...guessLimits, refusalsPerWindow: 2, maxAddresses: 2 });
  for (const ip of ["192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.3"]) expect(answerGuess(ip).status).toBe(403);
  expect(answerGuess("192.0.2.1").status).toBe(429);
  expect(answerGuess("192.0.2.2").status).toBe(403);
});
