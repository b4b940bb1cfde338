import type { EventDetails } from "@booking-events/operations";
import type { VNode } from "preact";
import { bookingPath } from "../bookings/booking-path.ts";
import { Text } from "../page/text.tsx";

/** What can be unfolded stands beside the link, since a link may not contain it. */
export function BookingLink({
  partner,
  reference,
  referenceKind,
}: Pick<EventDetails, "partner" | "reference"> & { referenceKind: EventDetails["referenceKind"] | null }): VNode {
  const path = bookingPath({ partner, reference, referenceKind: referenceKind ?? undefined });
  if (reference.length <= 60)
    return (
      <a href={path}>
        <Text value={reference} />
      </a>
    );
  return (
    <>
      <a href={path}>Open</a> <Text value={reference} limit={60} />
    </>
  );
}
