import { revealReasons } from "@booking-events/operations";
import type { VNode } from "preact";
import { ConfirmForm } from "../page/confirm-form.tsx";
import type { View } from "../page/view.ts";
import { bookingPath } from "./booking-path.ts";
import type { BookingRequest } from "./booking-request.ts";

const names = {
  "guest-request": "The guest asks",
  "partner-question": "The partner asks",
  "wrong-data": "Something is wrong in the data",
  incident: "An incident is looked into",
  legal: "The law demands it",
} satisfies Record<(typeof revealReasons)[number], string>;

/** Only for who has the role privacy. */
export function RevealForm({ view, request }: { view: View; request: BookingRequest }): VNode {
  const { at, before, isThorough } = request;
  const fields = { at, before, all: isThorough ? "yes" : undefined };
  const given = Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined);
  return (
    <ConfirmForm
      view={view}
      role="privacy"
      action={bookingPath({ ...request, at: undefined, before: undefined, isThorough: false })}
      verb="Show guest’s values"
      fields={Object.fromEntries(given)}
    >
      <p>They are shown once, in the next answer. It is recorded that you have seen them, and why.</p>
      <label>
        Reason
        <select name="reason" required>
          {revealReasons.map((reason) => (
            <option value={reason}>{names[reason]}</option>
          ))}
        </select>
      </label>
      <label>
        Ticket <small>such as OPS-1234, if there is one</small>
        <input name="ticket" maxLength={40} pattern="[A-Za-z0-9#\/_\-]*" autocomplete="off" />
      </label>
    </ConfirmForm>
  );
}
