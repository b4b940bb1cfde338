import { type ExpectedBooking, expectBookings, nameBooking } from "./oracle.ts";
import type { LoggedEvent } from "./read-database.ts";

/** What an operator wanted, and what the command said that it did. */
export interface Restore {
  partner: string;
  /** Each may be that of a trip and that of a consumer. */
  references: readonly string[];
  /** A time of receipt. */
  atMs: number;
  deleteNew: boolean;
  /** Of the command that was not killed. Null: there was none. */
  done: { readAtMs: number; bookings: readonly PlannedBooking[] } | null;
}

interface PlannedBooking {
  partner: string;
  referenceKind: string | null;
  reference: string;
  action: string | null;
  reason: string | null;
}

interface RestoreEvidence {
  /** Without what has been erased. */
  log: readonly (LoggedEvent & { content: string })[];
  restores: readonly Restore[];
  /** Names of the bookings that an operator has erased. */
  erased: ReadonlySet<string>;
  duplicateWindowMs: number;
}

/**
 * Compares what restores have done with what the bookings were at that time of receipt, by the oracle: each event of a
 * restore brings that back, and each booking that was otherwise has such an event, unless the command said why not.
 */
export function findWrongRestores(evidence: RestoreEvidence): string[] {
  const { log, restores, erased } = evidence;
  const histories = Map.groupBy(log, nameBooking);
  const stateAt = (name: string, sequence: number): ExpectedBooking | undefined => {
    const until = (histories.get(name) ?? []).filter((event) => event.sequence <= sequence);
    return expectBookings(until, evidence.duplicateWindowMs).bookings.get(name);
  };
  return [
    ...log.filter(isOperators).flatMap((event) => judgeEvent(event, restores, stateAt)),
    ...restores.flatMap((restore) =>
      namesOf(restore)
        .filter((name) => !erased.has(name))
        .flatMap((name) => judgeBooking(name, restore, histories.get(name) ?? [], stateAt)),
    ),
  ];
}

/** Partners' events came by a secret. */
export function isOperators({ secretId }: LoggedEvent): boolean {
  return secretId === null;
}

export function namesOf({ partner, references }: Pick<Restore, "partner" | "references">): string[] {
  return references.flatMap((reference) => [
    nameBooking({ partner, reference }),
    nameBooking({ partner, reference: `consumer ${reference}` }),
  ]);
}

type StateAt = (name: string, sequence: number) => ExpectedBooking | undefined;

function judgeEvent(event: LoggedEvent, restores: readonly Restore[], stateAt: StateAt): string[] {
  const name = nameBooking(event);
  const wanted = restores.find(
    (restore) => event.idempotencyKey?.endsWith(`-to-${restore.atMs}`) && namesOf(restore).includes(name),
  );
  if (wanted === undefined) return [`${event.id}: no operator has restored ${name}`];
  const then = stateAt(name, wanted.atMs * 1_000);
  if (then === undefined && !wanted.deleteNew) return [`${event.id} deletes ${name}, which is new`];
  const right = then?.state === "active" ? `update ${then.content}` : "delete";
  const found = event.kind === "delete" ? "delete" : `${event.kind} ${event.content}`;
  return found === right ? [] : [`${event.id} restores ${name} by ${found}, not ${right}`];
}

/** What the command may say of a booking that is not as it was. That the log has lost it is no excuse here. */
const excuses = new Set<string | null>(["in-queue", "changed-meanwhile", "erased", "unknown"]);

function judgeBooking(
  name: string,
  { done, atMs, deleteNew }: Restore,
  history: readonly LoggedEvent[],
  stateAt: StateAt,
): string[] {
  if (done === null) return [];
  const ofThatMs = history.filter(({ sequence }) => Math.floor(sequence / 1_000) === done.readAtMs);
  const isRestored = ofThatMs.some(isOperators);
  const planned = done.bookings.find((booking) => nameOf(booking) === name);
  if (planned?.action != null && isRestored) return [];
  // While Redis' clock is behind, thousands of events have the same millisecond, and other restores.
  if (ofThatMs.length > 0) return [];
  const before = describeContent(stateAt(name, done.readAtMs * 1_000 - 1));
  const then = describeContent(stateAt(name, atMs * 1_000));
  if (before === then || excuses.has(planned?.reason ?? null)) return [];
  // The queue does not tell a trip from a consumer of the same reference: its booking of the other kind stands for both.
  if (planned === undefined && done.bookings.some(isQueuedTwinOf(name))) return [];
  if (planned?.reason === "new" && !deleteNew) return [];
  const told = planned === undefined ? "nothing" : (planned.reason ?? planned.action);
  return [`${name} was ${before}, and was not restored to ${then}: the command said ${told}`];
}

function isQueuedTwinOf(name: string): (booking: PlannedBooking) => boolean {
  return ({ partner, reference, reason }) =>
    reason === "in-queue" && namesOf({ partner, references: [reference] }).includes(name);
}

function nameOf({ partner, referenceKind, reference }: PlannedBooking): string {
  return nameBooking({ partner, reference: referenceKind === "consumer" ? `consumer ${reference}` : reference });
}

/** A booking that did not exist and one that was deleted are both gone. */
function describeContent(booking: ExpectedBooking | undefined): string {
  return booking?.state === "active" ? String(booking.content) : "gone";
}
