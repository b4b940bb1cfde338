import { arrivalWindowMs, type DeadLetter } from "@booking-events/store";

const dayMs = 86_400_000;

/**
 * Puts events first whose guests arrive soon, by the day; the others keep their order. Among thousands, the last one waits
 * for minutes. In which order events of a booking come back does not matter: each keeps its place in the order of receipt.
 */
export function arrivingFirst(letters: readonly DeadLetter[], now: Date): DeadLetter[] {
  const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, "2026-11-20".length);
  // It may still be yesterday, or already be tomorrow, where the guest arrives.
  const [first, last] = [dayOf(now.getTime() - dayMs), dayOf(now.getTime() + arrivalWindowMs + dayMs)];
  const keyOf = ({ arrivalDay: day }: DeadLetter) => (day !== null && day >= first && day <= last ? day : "later");
  return letters.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : keyOf(one) > keyOf(other) ? 1 : 0));
}
