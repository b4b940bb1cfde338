import { Refusal } from "@booking-events/http";
import { decodeFormFields, decodeUtf8, lookupAnswers } from "@booking-events/schema";

/**
 * @param query as Node has it: each of its bytes is a character
 * @returns a function that returns the values of a name, in order
 * @throws Refusal for a query that is not valid UTF-8
 */
export function readParameters(query: string): (name: string) => string[] {
  const text = decodeUtf8(Buffer.from(query, "latin1"));
  const parameters = text === undefined ? undefined : decodeFormFields(text);
  if (parameters === undefined) throw new Refusal(lookupAnswers.invalidQuery);
  return (wanted) => parameters.filter(([name]) => name === wanted).map(([, value]) => value);
}
