/** Of the replay of dead letters, or of their end. */
export interface LettersReport {
  kind: "replay" | "discard";
  filter: { partner: string | undefined; code: string | undefined };
  total: number;
  /** How many have been put into the queue, or closed. */
  handled: number;
  /** What became of them, by the result. */
  results: Map<string, number>;
  /** Of those that were not applied. */
  examples: { eventId: string; result: string; detail: string }[];
}
