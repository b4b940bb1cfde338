import { describeTrip, type Proof, pickTrip } from "@booking-events/operations";
import type { VNode } from "preact";
import { Badge, type Tone } from "../page/badge.tsx";
import { type Fact, Facts } from "../page/facts.tsx";
import { Layout, Notice } from "../page/layout.tsx";
import { formatNumber } from "../page/numbers.ts";
import { PartnerLink } from "../page/paths.tsx";
import { Card } from "../page/section.tsx";
import { Shown } from "../page/shown.tsx";
import { Text } from "../page/text.tsx";
import type { BookingPageProps } from "./booking-request.ts";
import { Deliveries } from "./deliveries.tsx";
import { PointSection } from "./point.tsx";
import { RevealForm } from "./reveal-form.tsx";
import { Timeline } from "./timeline.tsx";
import { VerificationCard } from "./verification.tsx";

/** A booking that proves itself: what it is, why, whether that is right, and who has been told. */
export function BookingPage({ proof, request, isRevealed }: BookingPageProps): VNode {
  const { story } = proof;
  const hasContent = proof.point !== null && story.erased === null;
  return (
    <Layout
      title={`Booking of ${story.partner}`}
      intro={<Intro story={story} />}
      actions={hasContent && !isRevealed ? <RevealForm request={request} /> : undefined}
    >
      {isRevealed && (
        <Notice tone="remark">
          Guests’ values are shown in this answer only, and that you have seen them is recorded.
        </Notice>
      )}
      <Card>
        <Facts facts={[...describeBooking(story), ...describeContent(story)]} />
      </Card>
      <VerificationCard proof={proof} request={request} />
      <PointSection proof={proof} request={request} />
      <Timeline proof={proof} request={request} isRevealed={isRevealed} />
      <Deliveries proof={proof} />
    </Layout>
  );
}

function Intro({ story: { reference, referenceKind, partner } }: Pick<Proof, "story">): VNode {
  return (
    <>
      {referenceKind === "consumer" ? "Of the consumer " : "Trip "}
      <Text value={reference} />, sent by <PartnerLink id={partner} />
    </>
  );
}

function describeBooking({ booking, erased, queue }: Proof["story"]): Fact[] {
  const [state, tone] = describeState(booking?.state, erased !== null);
  return [
    ["State", <Badge tone={tone}>{state}</Badge>],
    ["Erased", erased?.at],
    ["Erased by", erased && (erased.by ?? "an operator who is not recorded")],
    ["Created", booking?.createdAt],
    ["Updated", booking?.updatedAt],
    ["Deleted", booking?.deletedAt],
    ["Content removed", booking?.contentRemovedAt],
    ["Queue", queue && describeQueue(queue)],
  ];
}

function describeState(state: string | undefined, isErased: boolean): [state: string, tone: Tone] {
  if (isErased) return ["erased", "quiet"];
  if (state === undefined) return ["nothing applied yet", "warn"];
  return state === "active" ? ["active", "good"] : ["deleted", "quiet"];
}

function describeQueue({ events, total, looked, problem }: NonNullable<Proof["story"]["queue"]>): VNode {
  if (problem !== null)
    return (
      <>
        Not looked at: <Shown value={problem} />.
      </>
    );
  const among = looked < total ? `the newest ${formatNumber(looked)} of ${formatNumber(total)}` : formatNumber(total);
  return (
    <>
      {events.length} of this booking among {among} that wait.
    </>
  );
}

function describeContent({ booking }: Proof["story"]): readonly Fact[] {
  const { payload } = booking ?? { payload: null };
  return typeof payload === "object" && payload !== null ? describeTrip(pickTrip({ ...payload })) : [];
}
