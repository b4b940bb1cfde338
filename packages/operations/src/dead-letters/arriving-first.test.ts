import type { DeadLetter } from "@booking-events/store";
import { expect, test } from "vitest";
import { arrivingFirst } from "./arriving-first.ts";

const now = new Date("2026-11-20T12:00:00Z");
const letter = (eventId: string, arrivalDay: string | null) => ({ eventId, arrivalDay }) as DeadLetter;

test("events of guests who arrive soon come first, and the others keep their order", () => {
  const letters = [
    letter("none", null),
    letter("next year", "2027-11-20"),
    letter("tomorrow", "2026-11-21"),
    letter("past", "2026-11-01"),
    letter("today", "2026-11-20"),
    letter("also tomorrow", "2026-11-21"),
  ];
  expect(arrivingFirst(letters, now).map(({ eventId }) => eventId)).toEqual([
    ...["today", "tomorrow", "also tomorrow", "none", "next year", "past"],
  ]);
});
