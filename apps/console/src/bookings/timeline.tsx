import type { BookingChange, StoryEvent } from "@booking-events/operations";
import type { VNode } from "preact";
import { Badge, type Tone } from "../page/badge.tsx";
import { formatNumber } from "../page/numbers.ts";
import { paths, SecretLink } from "../page/paths.tsx";
import { Section } from "../page/section.tsx";
import { Empty } from "../page/table.tsx";
import { Id, Text } from "../page/text.tsx";
import { Time } from "../page/time.tsx";
import { toneOf } from "../stuck/describe-cause.ts";
import { type BookingPageProps, bookingPath } from "./booking-request.ts";
import { ChangedFields, countsInFold } from "./changed-fields.tsx";

/** The events of a booking, the newest first: what each did, and why. */
export function Timeline({ proof, request, isRevealed }: BookingPageProps): VNode {
  const { events, earlier } = proof.story;
  const oldest = events.find(({ status }) => status === "applied");
  const changeOf = new Map(proof.changes.map((change) => [change.eventId, change]));
  return (
    <Section
      title="Events"
      id="events"
      hint="In the order in which they count, the newest first. An event that was posted alone has the id of its request."
    >
      {events.length === 0 && <Empty>The log has no event of the booking any more.</Empty>}
      <ol class="timeline" reversed start={earlier + events.length}>
        {events.toReversed().map((event) => (
          <TimelineEvent
            event={event}
            change={changeOf.get(event.id)}
            here={bookingPath(request, { at: event.id })}
            partner={proof.story.partner}
            isRevealed={isRevealed}
          />
        ))}
      </ol>
      {(earlier > 0 || request.before !== undefined) && (
        <nav class="pages" aria-label="Pages of events">
          <span>
            {request.before !== undefined && <a href={`${bookingPath(request, { before: "" })}#events`}>Newest</a>}
          </span>
          {earlier > 0 && oldest !== undefined && (
            <a rel="next" href={`${bookingPath(request, { before: oldest.id })}#events`}>
              {formatNumber(earlier)} earlier
            </a>
          )}
        </nav>
      )}
    </Section>
  );
}

interface TimelineEventProps {
  event: StoryEvent;
  /** That the feed has of it. */
  change: BookingChange | undefined;
  /** The page with the state after this event. */
  here: string;
  partner: string;
  isRevealed: boolean;
}

function TimelineEvent({ event, change, here, partner, isRevealed }: TimelineEventProps): VNode {
  const { id, kind, receivedAt, applied, changed, why } = event;
  const [word, tone] = describeEvent(event);
  return (
    <li class={`event event-${tone}`}>
      <div class="event-head">
        <Badge tone={tone}>{word}</Badge>
        <span>by {kind === null ? "an event that can’t be read" : `${kind === "update" ? "an" : "a"} ${kind}`}</span>
        <Time at={receivedAt} none="at an unknown time" />
        {applied !== null && <a href={`${here}#point`}>State here</a>}
      </div>
      <p>
        <Text value={why} limit={400} />
      </p>
      {changed !== null && countsInFold(event) && <ChangedFields changed={changed} isRevealed={isRevealed} />}
      <p class="event-foot">
        <a href={paths.event(id)}>
          <Id value={id} />
        </a>
        {applied !== null && <Origin partner={partner} applied={applied} />}
        {change !== undefined && <span>Change {change.id} of the feed</span>}
        {applied?.warnings.map((warning) => (
          <Badge tone="warn">
            <bdi>{warning}</bdi>
          </Badge>
        ))}
      </p>
    </li>
  );
}

function Origin({ partner, applied }: { partner: string; applied: NonNullable<StoryEvent["applied"]> }): VNode {
  const { secretId, idempotencyKey } = applied;
  if (secretId !== null)
    return (
      <span>
        by secret <SecretLink partner={partner} id={secretId} />
      </span>
    );
  return <span>{idempotencyKey?.startsWith("restore-") ? "by an operator" : "imported"}</span>;
}

const tones: Record<string, Tone> = {
  created: "good",
  recreated: "good",
  updated: "info",
  deleted: "quiet",
  ...toneOf,
};

/** @returns a word for what it did, or where it is */
export function describeEvent({ status, applied }: Pick<StoryEvent, "status" | "applied">): [word: string, tone: Tone] {
  const word = applied?.outcome ?? status;
  return [word, tones[word] ?? "quiet"];
}
