import type { LookedUpEvent } from "@booking-events/operations";
import type { VNode } from "preact";
import { ChangedFields, countsInFold, Names } from "../bookings/changed-fields.tsx";
import { describeEvent } from "../bookings/timeline.tsx";
import { Badge } from "../page/badge.tsx";
import { ConfirmForm } from "../page/confirm-form.tsx";
import { type Fact, Facts } from "../page/facts.tsx";
import { Layout } from "../page/layout.tsx";
import { PartnerLink, paths, SecretLink } from "../page/paths.tsx";
import { Card, Section } from "../page/section.tsx";
import { Id, Text } from "../page/text.tsx";
import { Time } from "../page/time.tsx";
import { BookingLink } from "./booking-link.tsx";
import { describeReceipt } from "./describe-receipt.ts";

/** One event: where it is, what it did and why, what its partner is told, and what can be done. */
export function EventPage({ found }: { found: LookedUpEvent }): VNode {
  const { story, deadLetter, sentFields } = found;
  const [word, tone] = describeEvent(story);
  const isOpen = deadLetter !== null && deadLetter.resolvedAt === null && story.status === "dead";
  return (
    <Layout
      title={`Event ${story.id}`}
      intro={
        <>
          <Badge tone={tone}>{word}</Badge> <Text value={story.why} limit={600} />
        </>
      }
      actions={isOpen ? <LetterActions path={paths.event(story.id)} /> : undefined}
    >
      <Card>
        <Facts facts={[...describeOrigin(found), ...describePlace(found)]} />
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
          {sentFields === null ? (
            <p class="faint">It has been removed, or can’t be read.</p>
          ) : (
            <Names names={sentFields} />
          )}
        </Card>
      </Section>
      {deadLetter !== null && (
        <Section title="Dead letter" id="dead-letter">
          <Card>
            <Facts facts={describeLetter(deadLetter)} />
          </Card>
        </Section>
      )}
    </Layout>
  );
}

function LetterActions({ path }: { path: string }): VNode {
  return (
    <>
      <ConfirmForm action={`${path}/replay`} verb="Replay">
        <p>
          It goes back into the queue, with its id and its place in the order. Fix the cause first. To do it twice is
          safe: no event is applied twice.
        </p>
      </ConfirmForm>
      <ConfirmForm action={`${path}/discard`} verb="Discard" isDangerous>
        <p>It is closed, and never applied. What it sent stays until it is too old.</p>
        <label>
          Reason <small>kept with it; write nothing of the guest’s</small>
          <input name="reason" required maxLength={200} autocomplete="off" />
        </label>
      </ConfirmForm>
    </>
  );
}

function describeOrigin({ story, partner, reference, queued }: LookedUpEvent): Fact[] {
  const { applied, referenceKind } = story;
  const secretId = applied?.secretId ?? queued?.envelope?.secretId ?? null;
  return [
    ["Partner", partner && <PartnerLink id={partner} />],
    [
      referenceKind === "consumer" ? "Consumer" : "Booking",
      reference && <BookingLink partner={partner} reference={reference} referenceKind={referenceKind} />,
    ],
    ["Kind", story.kind],
    ["Received", <Time at={story.receivedAt} none="at an unknown time" />],
    ["Secret", partner && secretId && <SecretLink partner={partner} id={secretId} />],
    ["Idempotency key", applied?.idempotencyKey ?? queued?.envelope?.idempotencyKey],
  ];
}

function describePlace({ story: { applied, sequence }, queued }: LookedUpEvent): Fact[] {
  const repeated = applied?.duplicateOf ?? null;
  return [
    ["Applied", applied?.processedAt],
    ["Place in the order", sequence && String(sequence)],
    [
      "Repeats",
      repeated && (
        <a href={paths.event(repeated)}>
          <Id value={repeated} />
        </a>
      ),
    ],
    ["Next attempt", queued?.nextAttemptAt],
    ["Failed attempts", queued?.failedAttempts],
    ["Warnings", applied?.warnings.join(", ")],
  ];
}

function describeLetter(letter: NonNullable<LookedUpEvent["deadLetter"]>): Fact[] {
  const { errorCode, error, attempts, failedAt, replayedAt, replayedBy, resolvedAt, resolvedBy, resolution } = letter;
  return [
    ["Error", <Text value={`${errorCode}: ${error}`} limit={400} />],
    ["Attempts", attempts],
    ["Failed", failedAt],
    ["Replayed", replayedAt],
    ["Replayed by", replayedBy],
    ["Closed", resolvedAt],
    ["Closed by", resolvedBy],
    ["Closed as", resolution],
  ];
}
