import type { ServerResponse } from "node:http";
import { Refusal } from "@booking-events/http";
import { answers, lookupAnswers } from "@booking-events/schema";

/** Of all lists that a process compares. One of a million references takes up to 100 MiB. */
const maxHeldBytes = 200 * 1_024 * 1_024;

/**
 * Says how many bytes a list holds by now.
 *
 * @throws Refusal if all lists together hold too much
 */
export type HoldBytes = (bytes: number) => void;

/** Bounds the memory of the lists that are compared. A slow list that holds little keeps nobody out. */
export class ListsUnderWay {
  readonly #maxHeldBytes: number;
  readonly #heldBytes = new Map<string, number>();

  constructor(options: { maxHeldBytes?: number } = {}) {
    this.#maxHeldBytes = options.maxHeldBytes ?? maxHeldBytes;
  }

  /**
   * Begins a list, which ends when the response is closed.
   *
   * @throws Refusal if the partner sends another list at the moment
   */
  begin(partner: string, response: ServerResponse): HoldBytes {
    const held = this.#heldBytes;
    if (held.has(partner)) throw new Refusal(lookupAnswers.alreadyReconciling);
    held.set(partner, 0);
    response.once("close", () => held.delete(partner));
    return (bytes) => {
      // Its memory is released when nobody waits for the answer.
      if (response.closed) return;
      held.set(partner, bytes);
      const total = [...held.values()].reduce((sum, one) => sum + one, 0);
      if (total > this.#maxHeldBytes) throw new Refusal(answers.overloaded);
    };
  }
}
