import { createLogger } from "@booking-events/runtime";
import { expect, test } from "vitest";
import { watchLaterVersions } from "./watch-later-versions.ts";

test("events of a later release are said once a minute, however many there are, and as a warning while they come", () => {
  let nowMs = 1_000_000;
  const said: unknown[] = [];
  const logger = createLogger({ name: "test", level: "info" }, { write: (line) => said.push(JSON.parse(line)) });
  const versions = watchLaterVersions({ logger, now: () => nowMs });
  expect(versions.findWarnings()).toEqual([]);
  for (let number = 0; number < 10_000; number += 1) versions.note(`event-${number}`);
  expect(said).toMatchObject([{ level: "error", eventId: "event-0", deliveries: 1 }]);
  expect(versions.findWarnings()).toHaveLength(1);
  nowMs += 60_000;
  versions.note("another");
  expect(said).toMatchObject([{}, { eventId: "another", deliveries: 10_000 }]);
  nowMs += 180_000;
  expect(versions.findWarnings()).toEqual([]);
});
