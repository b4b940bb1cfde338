import type { FieldAtPoint, StoryEvent } from "@booking-events/operations";
import type { VNode } from "preact";
import { Badge } from "../page/badge.tsx";
import { Section } from "../page/section.tsx";
import { type Column, Empty, Table } from "../page/table.tsx";
import { Masked } from "../page/text.tsx";
import { Time } from "../page/time.tsx";
import { useRole } from "../page/view.ts";
import { type BookingPageProps, type BookingRequest, bookingPath, toFields } from "./booking-request.ts";
import { countsInFold, JsonValue } from "./changed-fields.tsx";

/** More fields say nothing new, and make a page of many megabytes. */
const maxFields = 200;

type PointProps = Omit<BookingPageProps, "isRevealed">;

/** What the booking was at a point of its history, beside the point before and now. */
export function PointSection({ proof, request }: PointProps): VNode | null {
  const points = proof.story.events.filter(countsInFold);
  if (proof.story.stored === null || proof.story.erased !== null) return null;
  const shown = proof.point?.eventId ?? null;
  return (
    <Section title="At a point in time" id="point" hint="Move through the events in the order in which they count.">
      {points.length > 0 && <Slider points={points} shown={shown} request={request} />}
      <div id="state" aria-live="polite">
        <State proof={proof} request={request} />
      </div>
    </Section>
  );
}

interface SliderProps {
  points: readonly StoryEvent[];
  shown: string | null;
  request: BookingPageProps["request"];
}

/** Without scripts, the list and the button do the same. */
function Slider({ points, shown, request }: SliderProps): VNode {
  const found = points.findIndex(({ id }) => id === shown);
  const index = found === -1 ? points.length - 1 : found;
  const { reference, referenceKind } = request;
  const [earlier, later] = [points[index - 1], points[index + 1]];
  return (
    <form class="slider" action={bookingPath(request).split("?")[0]} data-slider="state">
      {[".", ".."].includes(reference) && <input type="hidden" name="reference" value={reference} />}
      {referenceKind !== undefined && <input type="hidden" name="kind" value={referenceKind} />}
      {Object.entries(toFields({ ...request, at: undefined })).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      <input
        type="range"
        aria-label="Point in the history"
        min={0}
        max={points.length - 1}
        value={index}
        disabled={points.length === 1}
        hidden
      />
      <label>
        <span class="hidden">After the event</span>
        <select name="at">
          {points.map((point, place) => (
            <option value={point.id} selected={place === index}>
              {describePoint(point, place)}
            </option>
          ))}
        </select>
      </label>
      <button type="submit" class="button" data-without-script>
        Show
      </button>
      <span class="steps" data-without-script>
        {earlier && <a href={`${bookingPath(request, { at: earlier.id })}#point`}>Point before</a>}
        {later && <a href={`${bookingPath(request, { at: later.id })}#point`}>Next point</a>}
      </span>
    </form>
  );
}

function describePoint({ receivedAt, applied }: StoryEvent, place: number): string {
  const time = receivedAt === null ? "?" : receivedAt.toISOString().slice(0, 19).replace("T", " ");
  return `${place + 1}. ${time} ${applied?.outcome ?? ""}`;
}

function State({ proof, request }: PointProps): VNode {
  const { point } = proof;
  const mayRestore = useRole("operator");
  if (point === null) return <Empty>The log has nothing of the booking from until then.</Empty>;
  const { fields } = point;
  const isNow = fields.every(({ differsNow }) => !differsNow) && point.state === proof.story.booking?.state;
  const wanted = isNow ? findBeforeDeletion(proof) : point;
  const shown = fields.toSorted((one, other) => rank(one) - rank(other)).slice(0, maxFields);
  return (
    <>
      <div class="point-head">
        <p>
          <Badge tone={point.state === "active" ? "good" : "quiet"}>{point.state}</Badge> after{" "}
          <a href={`/events/${point.eventId}`}>the event</a> of <Time at={point.receivedAt} />:{" "}
          {describeDifference(fields, isNow)}
        </p>
        {mayRestore && wanted !== undefined && (
          <RestoreLink path={findRestorePath(proof, request, wanted)} isBeforeDeletion={isNow} />
        )}
      </div>
      {point.isContentGone && <Empty>What the booking held then has been removed from the log.</Empty>}
      {shown.length > 0 && (
        <Table
          caption="The fields at this point, those that changed first"
          isCaptionHidden
          columns={columns}
          rows={shown}
          empty=""
        />
      )}
      {fields.length > maxFields && <p class="hint">{fields.length - maxFields} further fields are not shown.</p>}
    </>
  );
}

/** @returns the place at which a deleted booking was active last, if an event of the page is there */
function findBeforeDeletion({ story }: BookingPageProps["proof"]): { sequence: number } | undefined {
  if (story.booking?.state !== "deleted") return undefined;
  const last = story.events.findLast(({ applied }) => activeOutcomes.has(applied?.outcome ?? ""));
  return last?.applied ?? undefined;
}

const activeOutcomes = new Set<string>(["created", "updated", "recreated"]);

function RestoreLink({ path, isBeforeDeletion }: { path: string | null; isBeforeDeletion: boolean }): VNode {
  if (path === null)
    return (
      <span class="faint">
        The next event came within the same millisecond, so there is no time between them to restore to.
      </span>
    );
  return (
    <a class="button" href={path}>
      {isBeforeDeletion ? "Restore to before the deletion…" : "Restore to this point…"}
    </a>
  );
}

/**
 * The form to put a booking back to what it was after an event.
 *
 * @returns null: places are in microseconds and times in milliseconds, and none lies between it and the next event
 */
function findRestorePath(
  { story }: BookingPageProps["proof"],
  { partner, reference, referenceKind }: BookingRequest,
  { sequence }: { sequence: number },
): string | null {
  const atMs = Math.ceil(sequence / 1_000);
  const isAfterIt = (place: number) => place > sequence && place <= atMs * 1_000;
  if (story.events.some((event) => countsInFold(event) && isAfterIt(event.sequence ?? 0))) return null;
  const at = new Date(atMs).toISOString();
  return `/restore?${new URLSearchParams({ partner, reference, at, ...(referenceKind && { kind: referenceKind }) })}`;
}

function rank({ hasChanged, differsNow }: FieldAtPoint): number {
  return hasChanged ? 0 : differsNow ? 1 : 2;
}

/** The state may have changed and no field, as by a delete. */
function describeDifference(fields: readonly FieldAtPoint[], isNow: boolean): string {
  const changed = fields.filter(({ hasChanged }) => hasChanged).length;
  const later = fields.filter(({ differsNow }) => differsNow).length;
  const others = isNow ? "as it is now" : later === 0 ? "its fields as they are now" : `${later} other than now`;
  return `${fields.filter(({ isThere }) => isThere).length} fields, ${changed} changed by it, ${others}.`;
}

const same = <span class="faint">the same</span>;

const columns: Column<FieldAtPoint>[] = [
  { title: "Field", isName: true, cell: ({ name }) => name },
  { title: "Then", cell: ({ isThere, value }) => <FieldValue isThere={isThere} value={value} /> },
  {
    title: "Before it",
    cell: ({ hasChanged, wasThere, before }) => (hasChanged ? <FieldValue isThere={wasThere} value={before} /> : same),
  },
  {
    title: "Now",
    cell: ({ differsNow, isThereNow, now }) => (differsNow ? <FieldValue isThere={isThereNow} value={now} /> : same),
  },
];

/** Unless the guest's values are revealed, only those about the trip are known. */
function FieldValue({ isThere, value }: { isThere: boolean; value: string | null }): VNode {
  if (!isThere) return <span class="faint">none</span>;
  return value === null ? <Masked /> : <JsonValue text={value} />;
}
