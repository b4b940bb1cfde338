import { describeCount } from "@booking-events/operations";
import type { VNode } from "preact";
import { Badge } from "../page/badge.tsx";
import { Card, Section } from "../page/section.tsx";
import { Text } from "../page/text.tsx";
import { formatClock } from "../page/time.tsx";
import { useView } from "../page/view.ts";
import { type BookingPageProps, bookingPath } from "./booking-request.ts";

/** What recomputing the booking from the log has come to. */
export function VerificationCard({ proof, request }: Omit<BookingPageProps, "isRevealed">): VNode | null {
  const { story, verification } = proof;
  const { now } = useView();
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
            <Badge tone="good">proven</Badge> Recomputed from {describeCount(verification.events, "event")} at{" "}
            {formatClock(now, true)}: the stored booking, its content and each outcome are the same.
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
