import { type FieldCount, type Recorder, toDay } from "@booking-events/queue";

/** @param what.requestId of the event; null: it was a dry run */
export function countField(
  recorder: Recorder<FieldCount>,
  { requestId, ...what }: Pick<FieldCount, "partner" | "field" | "code"> & { requestId: string | null },
): void {
  const now = new Date();
  const day = toDay(now);
  const key = `${what.partner} ${day} ${what.field} ${what.code}`;
  const known = recorder.get(key);
  if (known === undefined) {
    recorder.set(key, { ...what, day, count: 1, firstAt: now, lastAt: now, lastEventId: requestId });
    return;
  }
  known.count += 1;
  known.lastAt = now;
  known.lastEventId = requestId ?? known.lastEventId;
}
