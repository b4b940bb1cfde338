import { createLogger } from "@booking-events/runtime";
import { expect, test } from "vitest";
import { LaterVersions } from "./watch-later-versions.ts";

test("events of a later release are logged once a minute at most, and are a warning while they come", () => {
  let nowMs = 1_000_000;
  const logged: unknown[] = [];
  const logger = createLogger({ name: "test", level: "info" }, { write: (line) => logged.push(JSON.parse(line)) });
  const versions = new LaterVersions(logger, () => nowMs);
  expect(versions.findWarnings()).toEqual([]);
  for (let number = 0; number < 10_000; number += 1) versions.note(`event-${number}`);
  expect(logged).toMatchObject([{ level: "error", eventId: "event-0", deliveries: 1 }]);
  expect(versions.findWarnings()).toHaveLength(1);
  nowMs += 60_000;
  versions.note("another");
  expect(logged).toMatchObject([{}, { eventId: "another", deliveries: 10_000 }]);
  nowMs += 180_000;
  expect(versions.findWarnings()).toEqual([]);
});
