import type { StuckCause } from "@booking-events/operations";
import type { Tone } from "../page/badge.tsx";

/** What it means that events are stuck so, and what becomes of them without an operator. */
export const meaningOf = {
  dead: "could not be applied, and are not tried again",
  "given-up": "their workers died too often; a worker tries each of them alone",
  delayed: "their last attempt failed, and they are tried again",
  held: "a worker has them",
  waiting: "wait for a worker",
} satisfies Record<StuckCause["status"], string>;

export const toneOf = {
  dead: "bad",
  "given-up": "bad",
  delayed: "warn",
  held: "info",
  waiting: "info",
} satisfies Record<StuckCause["status"], Tone>;

export const statuses = Object.keys(meaningOf) as StuckCause["status"][];
