import type { StoryEvent } from "@booking-events/operations";

/** What repeats another event, has expired or has been erased takes no part in what the booking holds. */
export function countsInFold({ applied }: StoryEvent): boolean {
  return applied !== null && applied.duplicateOf === null && !["expired", "erased"].includes(applied.outcome);
}
