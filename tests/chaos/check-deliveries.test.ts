import { expect, test } from "vitest";
import {
  checkDeliveries,
  type DeliveryEvidence,
  type Received,
  type SubscriptionEvidence,
} from "./check-deliveries.ts";
import type { ChangeRow } from "./read-database.ts";

const second = 1_000;

/** Two bookings. Of the first, two changes; the second is erased between its two. */
const changes: ChangeRow[] = [
  { ...change(1, "b1", 1, "created"), reference: "T1" },
  { ...change(2, "b1", 2, "deleted"), reference: "T1" },
  change(3, "b2", 1, "created"),
  change(4, "b2", 2, "erased"),
];

function change(id: number, bookingId: string, revision: number, kind: string): ChangeRow {
  return { id, bookingId, partner: "acme", reference: null, revision, change: kind, eventId: `e${id}` };
}

/** A request that begins at a second, is answered at once, and was recorded a second later. */
function received(changeId: number, atS: number, more: Partial<Received> = {}): Received {
  const row = changes[changeId - 1] as ChangeRow;
  const atMs = atS * second;
  return {
    receivedAtMs: atMs,
    endedAtMs: atMs + 10,
    answer: "kept",
    recordedAtMs: atMs + second,
    timestampMs: atMs,
    webhookId: `s-${changeId}`,
    isSigned: true,
    changeId,
    bookingId: row.bookingId,
    partner: "acme",
    revision: row.revision,
    change: row.change,
    eventId: row.change === "erased" ? null : row.eventId,
    content: changeId === 1 ? "A" : null,
    ...more,
  };
}

function evidence(
  requests: readonly Received[],
  more: Partial<SubscriptionEvidence> & Partial<Pick<DeliveryEvidence, "erasedAtMs">> = {},
): DeliveryEvidence {
  const { erasedAtMs = new Map(), ...others } = more;
  const epochs = [requests.toSorted((one, other) => one.receivedAtMs - other.receivedAtMs)];
  const log = [
    { id: "e1", content: "A" },
    { id: "e2", content: null },
  ] as unknown as DeliveryEvidence["database"]["log"];
  return {
    subscriptions: [{ name: "s", mode: "every", partner: null, epochs, leases: [], ...others }],
    database: { changes, log },
    erasedAtMs,
  };
}

const good = [received(1, 10), received(2, 20), received(4, 40)];
/** One process used its lease for 15 s, another one took over 10 s later. */
const leases = [
  { token: "one", fromMs: 0, usedAtMs: 15 * second },
  { token: "two", fromMs: 25 * second, usedAtMs: 100 * second },
];
const without = (changeId: number) => good.filter((one) => one.changeId !== changeId);
const findings = (given: DeliveryEvidence) => checkDeliveries(given).map(({ what }) => what);

test("nothing is found if each change was accepted in order, and what was before an erasure or not", () => {
  expect(checkDeliveries(evidence(good))).toEqual([]);
  expect(checkDeliveries(evidence([...good, received(3, 30)]))).toEqual([]);
  expect(checkDeliveries(evidence([...good, received(1, 5, { answer: "refused", recordedAtMs: null })]))).toEqual([]);
});

test.each([
  ["a change that was never accepted", without(1), "the change 1 (created) of b1 is missing"],
  ["an erasure that was never accepted", without(4), "the change 4 (erased) of b2 is missing"],
  [
    "a change that the subscriber has lost",
    [...without(1), received(1, 10, { answer: "forgotten" })],
    "the change 1 (created) of b1 is missing",
  ],
  ["a wrong signature", [...without(1), received(1, 10, { isSigned: false })], "is not signed"],
  ["another revision", [...without(1), received(1, 10, { revision: 7 })], "is not the change of the feed"],
  ["another content", [...without(1), received(1, 10, { content: "B" })], "has the content B, not A"],
  ["another event", [...without(1), received(1, 10, { eventId: "e9" })], "is of another event"],
  ["an id for two changes", [...without(2), received(2, 20, { webhookId: "s-1" })], "s-1 is the id of the changes"],
])("%s is found", (_, requests, what) => {
  expect(findings(evidence(requests))).toEqual([expect.stringContaining(what)]);
});

test("in latest, the last change is enough", () => {
  expect(findings(evidence(without(1), { mode: "latest" }))).toEqual([]);
  expect(findings(evidence(without(2), { mode: "latest" }))).toHaveLength(1);
});

test("a subscription to a partner gets nothing of others, and needs nothing of them", () => {
  expect(findings(evidence([], { partner: "globe" }))).toEqual([]);
  expect(findings(evidence([received(1, 10)], { partner: "globe" }))).toEqual([expect.stringContaining("is of acme")]);
});

test.each([
  ["a change that was accepted", received(1, 12)],
  ["an earlier change", received(1, 21)],
  ["another change of the booking while one is under way", received(2, 9, { endedAtMs: 10_500, answer: "refused" })],
])("%s does not come by the same process", (_, more) => {
  expect(findings(evidence([...good, more]))).toEqual([expect.stringContaining("by the same process")]);
});

test("who takes over may repeat what was accepted just before, and not recorded", () => {
  const unrecorded = { recordedAtMs: null };
  const repeated = received(1, 26);
  const later = received(2, 30);
  const before = [received(1, 14, unrecorded), later, received(4, 40)];
  expect(findings(evidence([...before, repeated], { leases }))).toEqual([]);
  expect(findings(evidence([...before, repeated], { leases: leases.slice(0, 1) }))).toHaveLength(1);
  expect(findings(evidence([received(1, 14), later, received(4, 40), repeated], { leases }))).toEqual([
    expect.stringContaining("recorded as done"),
  ]);
  expect(findings(evidence([received(1, -11, unrecorded), later, received(4, 40), repeated], { leases }))).toEqual([
    expect.stringContaining("long before its process fell silent"),
  ]);
});

test("a replay repeats everything, and brings back what was lost", () => {
  const lost = good.map((one) => ({ ...one, answer: "forgotten" as const }));
  const again = [received(1, 60), received(2, 61), received(4, 62)];
  expect(findings(evidence([], { epochs: [lost, again] }))).toEqual([]);
  expect(findings(evidence([], { epochs: [[...lost, ...again]] }))).not.toEqual([]);
});

test("an attempt that began after an erasure names no guest, whoever has heard of the erasure first", () => {
  const late = [...good, received(3, 33)];
  const found = [{ kind: "guest stays", what: expect.stringContaining("began after its booking was erased") }];
  expect(checkDeliveries(evidence(late, { erasedAtMs: new Map([["b2", 31_900]]) }))).toEqual(found);
  expect(checkDeliveries(evidence(late, { erasedAtMs: new Map([["b2", 32_100]]) }))).toEqual([]);
  const other = { name: "t", mode: "latest", partner: "globe", leases: [] } as const;
  const told = evidence(late);
  const subscriptions = [...told.subscriptions, { ...other, epochs: [[received(4, 31, { partner: "globe" })]] }];
  expect(checkDeliveries({ ...told, subscriptions })).toContainEqual(found[0]);
});
