import type { LookedUpEvent } from "@booking-events/operations";
import type { VNode } from "preact";
import { ChangedFields } from "../bookings/changed-fields.tsx";
import { countsInFold } from "../bookings/counts-in-fold.ts";
import { describeEvent } from "../bookings/timeline.tsx";
import { Badge } from "../page/badge.tsx";
import { ConfirmForm } from "../page/confirm-form.tsx";
import { type Fact, Facts } from "../page/facts.tsx";
import { Layout } from "../page/layout.tsx";
import { paths } from "../page/paths.ts";
import { Card, Section } from "../page/section.tsx";
import { Id, Text } from "../page/text.tsx";
import { Time } from "../page/time.tsx";
import type { View } from "../page/view.ts";
import { BookingLink } from "./booking-link.tsx";
import { describeReceipt } from "./describe-receipt.ts";

const maxNames = 200;

/** One event: where it is, what it did and why, what its partner is told, and what can be done. */
export function EventPage({ view, found }: { view: View; found: LookedUpEvent }): VNode {
  const { story, deadLetter } = found;
  const [word, tone] = describeEvent(story);
  const isOpen = deadLetter !== null && deadLetter.resolvedAt === null && story.status === "dead";
  return (
    <Layout
      view={view}
      title={`Event ${story.id}`}
      intro={
        <>
          <Badge tone={tone}>{word}</Badge> <Text value={story.why} limit={600} />
        </>
      }
      actions={isOpen ? <LetterActions view={view} eventId={story.id} /> : undefined}
    >
      <Card>
        <Facts facts={[...describeOrigin(found, view), ...describePlace(found, view)]} />
      </Card>
      <Section
        title="What its partner is told"
        id="receipt"
        hint="By the receipt, for as long as the log has the event."
      >
        <Card>
          <p>{describeReceipt(found)}</p>
        </Card>
      </Section>
      {story.changed !== null && countsInFold(story) && (
        <Section title="What it changed" id="changed">
          <Card>
            {story.changed.names?.length === 0 ? (
              <p>Nothing.</p>
            ) : (
              <ChangedFields changed={story.changed} isRevealed={false} />
            )}
          </Card>
        </Section>
      )}
      <Section
        title="What it sent"
        id="sent"
        hint="Only the names of the fields. Values are shown on the booking’s page."
      >
        <Card>
          <SentFields names={found.sentFields} />
        </Card>
      </Section>
      {deadLetter !== null && (
        <Section title="Dead letter" id="dead-letter">
          <Card>
            <Facts facts={describeLetter(deadLetter, view)} />
          </Card>
        </Section>
      )}
    </Layout>
  );
}

function LetterActions({ view, eventId }: { view: View; eventId: string }): VNode {
  return (
    <>
      <ConfirmForm view={view} role="operator" action={`/events/${eventId}/replay`} verb="Replay">
        <p>
          It goes back into the queue, with its id and its place in the order. Fix the cause first. To do it twice is
          safe: no event is applied twice.
        </p>
      </ConfirmForm>
      <ConfirmForm view={view} role="operator" action={`/events/${eventId}/discard`} verb="Discard" isDangerous>
        <p>It is closed, and never applied. What it sent stays until it is too old.</p>
        <label>
          Reason <small>kept with it; write nothing of the guest’s</small>
          <input name="reason" required maxLength={200} autocomplete="off" />
        </label>
      </ConfirmForm>
    </>
  );
}

function describeOrigin({ story, partner, reference, queued }: LookedUpEvent, { now }: View): Fact[] {
  const { applied } = story;
  const secretId = applied?.secretId ?? queued?.envelope?.secretId ?? null;
  const key = applied?.idempotencyKey ?? queued?.envelope?.idempotencyKey ?? null;
  return [
    ["Partner", partner && <a href={paths.partner(partner)}>{partner}</a>],
    [
      story.referenceKind === "consumer" ? "Consumer" : "Booking",
      partner && reference && (
        <BookingLink partner={partner} reference={reference} referenceKind={story.referenceKind} />
      ),
    ],
    ["Kind", story.kind],
    ["Received", <Time at={story.receivedAt} now={now} none="at an unknown time" />],
    ["Secret", partner && secretId && <a href={`${paths.partner(partner)}#secrets`}>{secretId}</a>],
    ["Idempotency key", key && <Text value={key} />],
  ];
}

function describePlace({ story, queued }: LookedUpEvent, { now }: View): Fact[] {
  const { applied } = story;
  return [
    ["Applied", applied && <Time at={applied.processedAt} now={now} />],
    ["Place in the order", story.sequence && String(story.sequence)],
    [
      "Repeats",
      applied?.duplicateOf && (
        <a href={`/events/${applied.duplicateOf}`}>
          <Id value={applied.duplicateOf} />
        </a>
      ),
    ],
    ["Next attempt", queued?.nextAttemptAt && <Time at={queued.nextAttemptAt} now={now} />],
    ["Failed attempts", queued && String(queued.failedAttempts)],
    ["Warnings", applied?.warnings.length ? <Text value={applied.warnings.join(", ")} /> : null],
  ];
}

function SentFields({ names }: { names: string[] | null }): VNode {
  if (names === null) return <p class="faint">It has been removed, or can’t be read.</p>;
  return (
    <p class="names">
      {names.slice(0, maxNames).map((name) => (
        <code>
          <Text value={name} limit={60} />
        </code>
      ))}
      {names.length > maxNames && <span class="faint">and {names.length - maxNames} more</span>}
    </p>
  );
}

function describeLetter(letter: NonNullable<LookedUpEvent["deadLetter"]>, { now }: View): Fact[] {
  const { errorCode, error, attempts, failedAt, replayedAt, replayedBy, resolvedAt, resolvedBy, resolution } = letter;
  return [
    ["Error", <Text value={`${errorCode}: ${error}`} limit={400} />],
    ["Attempts", String(attempts)],
    ["Failed", <Time at={failedAt} now={now} />],
    [
      "Replayed",
      replayedAt && (
        <>
          <Time at={replayedAt} now={now} /> by <Text value={replayedBy ?? "?"} />
        </>
      ),
    ],
    [
      "Closed",
      resolvedAt && (
        <>
          <Time at={resolvedAt} now={now} /> by <Text value={resolvedBy ?? "?"} />: <Text value={resolution ?? ""} />
        </>
      ),
    ],
  ];
}
