import type { EventDetails } from "@booking-events/operations";
import type { VNode } from "preact";
import { bookingPath } from "../bookings/booking-request.ts";
import { Text } from "../page/text.tsx";

/** What of a booking may be known. */
type Named = { [Name in "partner" | "reference" | "referenceKind"]: EventDetails[Name] | null };

/** What can be unfolded stands beside the link, since a link may not contain it. */
export function BookingLink({ partner, reference, referenceKind }: Named): VNode | null {
  if (partner === null || reference === null) return <>?</>;
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
