import type { EventKind } from "@booking-events/schema";
import type { Outgoing } from "./post-events.ts";
import { createRandom } from "./random.ts";

export const lockedReference = "LOCKED";
const hotBookings = 4;

/** Always new bookings, each updated once. */
export function inventOrdinary(partner: string, index: number): Outgoing {
  return toPost(partner, index % 2 === 0 ? "create" : "update", `TRIP-${index >> 1}`, ordinaryContent(index));
}

/** All of one booking. */
export function inventHot(partner: string, index: number): Outgoing {
  const kind = (["create", "update", "update", "delete"] as const)[index % 4] ?? "update";
  return toPost(partner, kind, "HOT", ordinaryContent(index));
}

/** All of one booking, which is never deleted: somebody locks its row. */
export function inventLocked(partner: string, index: number): Outgoing {
  return toPost(partner, index === 0 ? "create" : "update", lockedReference, ordinaryContent(index));
}

/** The worst payloads in turn, each for a new booking and for a hot one. */
export function inventWorst(partner: string, index: number): Outgoing {
  const round = Math.floor(index / worstContents.length);
  const content = worstContents[index % worstContents.length] ?? ordinaryContent(index);
  if (round % 2 === 0) return toPost(partner, "create", `NEW-${index}`, content);
  return toPost(partner, round % 4 === 1 ? "update" : "create", `HOT-${(round >> 1) % hotBookings}`, content);
}

type Content = ReturnType<typeof toContent>;

/** @returns a payload without its reference, and its JSON after the opening brace */
function toContent(payload: object) {
  return { payload, rest: JSON.stringify(payload).slice(1) };
}

function toPost(partner: string, kind: EventKind, reference: string, { payload, rest }: Content): Outgoing {
  return {
    partner,
    kind,
    reference,
    idempotencyKey: null,
    attempts: [],
    contentType: "application/json",
    // Both are computed each time: ten thousand of 64 KB do not fit into memory.
    get payload() {
      return { consumerTripPartnerExternalReference: reference, ...payload };
    },
    get body() {
      return `{"consumerTripPartnerExternalReference":${JSON.stringify(reference)},${rest}`;
    },
  };
}

function ordinaryContent(index: number): Content {
  return toContent({
    consumerGivenName: "Ana",
    consumerTripArrivalDate: "2026-06-14",
    consumerTripVenueName: "Harbour Hall",
    note: `event number ${index}`,
  });
}

/** A little less than ingest's limit of 64 KiB, with room for the reference. */
const largestBytes = 65_000;
/** Ingest's limit is 2,000 JSON values. The payload, its reference and the field with the others are three of them. */
const mostValues = 1_997;
const deepestLevels = 16;

const worstContents: readonly Content[] = [
  { text: mixedText(largestBytes / 2 - 50) },
  { list: Array.from({ length: mostValues }, () => ({})) },
  // The payload and the list are two levels.
  { deep: Array.from({ length: Math.floor(mostValues / (deepestLevels - 2)) }, () => nest(deepestLevels - 2)) },
  Object.fromEntries(
    Array.from({ length: mostValues }, (_, at) => [`field-with-a-long-name-${String(at).padStart(4, "0")}`, 1]),
  ),
].map(toContent);

/** Characters that take two bytes in UTF-8 and in V8, in an order that PostgreSQL can hardly compress. */
function mixedText(length: number): string {
  const random = createRandom(1, "text");
  return Array.from({ length }, () => String.fromCodePoint(Math.floor(random.between(0x100, 0x600)))).join("");
}

function nest(levels: number): unknown[] {
  return levels === 1 ? [] : [nest(levels - 1)];
}
