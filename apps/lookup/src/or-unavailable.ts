import { Refusal } from "@booking-events/http";
import { lookupAnswers } from "@booking-events/schema";

/** An outage of Redis or PostgreSQL is never the partner's fault. */
export async function orUnavailable<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (cause) {
    throw new Refusal(lookupAnswers.lookupUnavailable, { cause });
  }
}
