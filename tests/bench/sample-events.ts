import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const example = fileURLToPath(new URL("../../packages/schema/examples/full-booking.json", import.meta.url));

/** The example with every listed field. */
export const fullBooking: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries((JSON.parse(readFileSync(example, "utf8")) as { payload: Record<string, unknown> }).payload).map(
    ([name, value]) => [name, String(value)],
  ),
);

export const bodies = {
  JSON: { contentType: "application/json", body: JSON.stringify(fullBooking) },
  form: { contentType: "application/x-www-form-urlencoded", body: new URLSearchParams(fullBooking).toString() },
} as const;

/** A load with `hasIds` creates another booking with each request. */
export const newBookings = {
  contentType: "application/json",
  body: JSON.stringify({ ...fullBooking, consumerTripPartnerExternalReference: "TRIP-[<id>]" }),
  hasIds: true,
};
