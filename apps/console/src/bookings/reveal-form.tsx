import { revealReasons } from "@booking-events/operations";
import type { VNode } from "preact";
import { ConfirmForm } from "../page/confirm-form.tsx";
import { type BookingRequest, bookingPath, toFields } from "./booking-request.ts";

const names = {
  "guest-request": "The guest asks",
  "partner-question": "The partner asks",
  "wrong-data": "Something is wrong in the data",
  incident: "An incident is looked into",
  legal: "The law demands it",
} satisfies Record<(typeof revealReasons)[number], string>;

export function RevealForm({ request }: { request: BookingRequest }): VNode {
  const { partner, reference, referenceKind } = request;
  return (
    <ConfirmForm
      role="privacy"
      action={bookingPath({ partner, reference, referenceKind })}
      verb="Show guest’s values"
      fields={toFields(request)}
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
