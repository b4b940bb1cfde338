/** What a partner tells of a booking. Create and update carry a whole booking, delete only says which. */
export const eventKinds = ["create", "update", "delete"] as const;

export type EventKind = (typeof eventKinds)[number];
