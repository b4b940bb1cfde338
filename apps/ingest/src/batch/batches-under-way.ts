import type { ServerResponse } from "node:http";
import { Refusal } from "@booking-events/http";
import { answers } from "@booking-events/schema";

/** Of all partners. What they hold together is bounded by this. */
const maxBatches = 16;

/** One batch at a time for each partner: with two, nobody could say in which order its events were received. */
export class BatchesUnderWay {
  readonly #partners = new Set<string>();

  /**
   * Begins a batch, which ends when the response is closed, or before that when the returned function is called.
   *
   * @throws Refusal if the partner sends another one, or too many others do
   */
  begin(partner: string, response: ServerResponse): () => void {
    if (this.#partners.has(partner)) throw new Refusal(answers.alreadySendingBatch);
    if (this.#partners.size >= maxBatches) throw new Refusal(answers.overloaded);
    this.#partners.add(partner);
    let isOver = false;
    const end = () => {
      if (!isOver) this.#partners.delete(partner);
      isOver = true;
    };
    response.once("close", end);
    return end;
  }
}
