import { describeTrip, type Proof, pickTrip } from "@booking-events/operations";
import type { VNode } from "preact";
import { Badge, type Tone } from "../page/badge.tsx";
import { type Fact, Facts } from "../page/facts.tsx";
import { Layout } from "../page/layout.tsx";
import { paths } from "../page/paths.ts";
import { Card, Section } from "../page/section.tsx";
import { Text } from "../page/text.tsx";
import { Time } from "../page/time.tsx";
import type { View } from "../page/view.ts";
import type { BookingPageProps } from "./booking-page-props.ts";
import { Deliveries } from "./deliveries.tsx";
import { PointSection } from "./point.tsx";
import { RevealForm } from "./reveal-form.tsx";
import { Timeline } from "./timeline.tsx";
import { VerificationCard } from "./verification.tsx";

/** A booking that proves itself: what it is, why, whether that is right, and who has been told. */
export function BookingPage({ view, proof, request, isRevealed }: BookingPageProps): VNode {
  const { story, changes, deliveries } = proof;
  const hasContent = proof.point !== null && story.erased === null;
  return (
    <Layout
      view={view}
      title={`Booking of ${story.partner}`}
      intro={<Intro story={story} />}
      actions={hasContent && !isRevealed ? <RevealForm view={view} request={request} /> : undefined}
    >
      {isRevealed && (
        <p class="notice notice-remark">
          Guests’ values are shown in this answer only, and that you have seen them is recorded.
        </p>
      )}
      <Card>
        <Facts facts={[...describeBooking(story, view), ...describeContent(story)]} />
      </Card>
      <VerificationCard proof={proof} request={request} now={view.now} />
      <PointSection view={view} proof={proof} request={request} />
      <Timeline view={view} proof={proof} request={request} isRevealed={isRevealed} />
      <Section
        title="Who has been told"
        id="deliveries"
        hint="The readers of the feed and the subscriptions. Dealt with: delivered, or left out by a filter."
      >
        <Deliveries view={view} changes={changes} deliveries={deliveries} />
      </Section>
    </Layout>
  );
}

function Intro({ story }: { story: Proof["story"] }): VNode {
  const { reference, referenceKind, partner } = story;
  return (
    <>
      {referenceKind === "consumer" ? "Of the consumer " : "Trip "}
      <Text value={reference} />, sent by <a href={paths.partner(partner)}>{partner}</a>
    </>
  );
}

function describeBooking({ booking, erased, queue }: Proof["story"], { now }: View): Fact[] {
  const [state, tone] = describeState(booking?.state, erased !== null);
  return [
    ["State", <Badge tone={tone}>{state}</Badge>],
    [
      "Erased",
      erased && (
        <>
          <Time at={erased.at} now={now} /> by <Text value={erased.by ?? "an operator who is not recorded"} />
        </>
      ),
    ],
    ["Created", booking && <Time at={booking.createdAt} now={now} />],
    ["Updated", booking && <Time at={booking.updatedAt} now={now} />],
    ["Deleted", booking?.deletedAt && <Time at={booking.deletedAt} now={now} />],
    ["Content removed", booking?.contentRemovedAt && <Time at={booking.contentRemovedAt} now={now} />],
    ["Queue", queue && describeQueue(queue)],
  ];
}

function describeState(state: string | undefined, isErased: boolean): [state: string, tone: Tone] {
  if (isErased) return ["erased", "quiet"];
  if (state === undefined) return ["nothing applied yet", "warn"];
  return state === "active" ? ["active", "good"] : ["deleted", "quiet"];
}

function describeQueue({ events, total, looked, problem }: NonNullable<Proof["story"]["queue"]>): string {
  if (problem !== null) return `Not looked at: ${problem}.`;
  const among =
    looked < total ? `the newest ${looked.toLocaleString("en")} of ${total.toLocaleString("en")}` : String(total);
  return `${events.length} of this booking among ${among} that wait.`;
}

function describeContent({ booking }: Proof["story"]): Fact[] {
  const { payload } = booking ?? { payload: null };
  if (typeof payload !== "object" || payload === null) return [];
  return describeTrip(pickTrip({ ...payload })).map(([name, value]) => [name, value && <Text value={value} />]);
}
