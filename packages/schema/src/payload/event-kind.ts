/** What a partner reports about a booking. Create and update carry the complete booking, delete only its reference. */
export const eventKinds = ["create", "update", "delete"] as const;

export type EventKind = (typeof eventKinds)[number];
