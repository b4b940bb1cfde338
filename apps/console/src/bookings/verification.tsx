import type { Proof } from "@booking-events/operations";
import type { VNode } from "preact";
import { Badge } from "../page/badge.tsx";
import { Card, Section } from "../page/section.tsx";
import { Text } from "../page/text.tsx";
import { bookingPath } from "./booking-path.ts";
import type { BookingRequest } from "./booking-request.ts";

/** What recomputing the booking from the log has come to. */
export function VerificationCard({
  proof: { story, verification },
  request,
  now,
}: {
  proof: Proof;
  request: BookingRequest;
  now: Date;
}): VNode | null {
  if (story.stored === null || story.erased !== null) return null;
  return (
    <Section title="Is it right?" id="proof">
      <Card>
        {verification === null ? (
          <p>
            It has many events, so it is not recomputed on each view.{" "}
            <a href={bookingPath(request, { all: "yes" })}>Recompute it now</a>
          </p>
        ) : verification.differences.length === 0 ? (
          <p>
            <Badge tone="good">proven</Badge> Recomputed from {describeEvents(verification.events)} at{" "}
            {now.toISOString().slice(11, 19)}: the stored booking, its content and each outcome are the same.
            {verification.isOlderThanLog && " Its first events have been removed, so it was compared from there."}
          </p>
        ) : (
          <Differences differences={verification.differences} />
        )}
      </Card>
    </Section>
  );
}

function Differences({ differences }: { differences: string[] }): VNode {
  return (
    <>
      <p>
        <Badge tone="bad">differs</Badge> What is stored is not what the events in the log come to. To correct it:{" "}
        <code>ops bookings repair</code>
      </p>
      <ul class="plain">
        {differences.map((difference) => (
          <li>
            <Text value={difference} limit={400} />
          </li>
        ))}
      </ul>
    </>
  );
}

function describeEvents(count: number): string {
  return count === 1 ? "1 event" : `${count.toLocaleString("en")} events`;
}
