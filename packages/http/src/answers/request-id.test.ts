import { expect, test } from "vitest";
import { createRequestId } from "./request-id.ts";

test("ids are unique UUIDs of version 7 that start with the time", () => {
  const before = Date.now();
  const ids = Array.from({ length: 10_000 }, createRequestId);
  const after = Date.now();
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) {
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const timeMs = Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16);
    expect(timeMs).toBeGreaterThanOrEqual(before);
    expect(timeMs).toBeLessThanOrEqual(after);
  }
});
