import { decodeFormFields, decodeUtf8 } from "@booking-events/schema";

/**
 * @param query as Node has it: each of its bytes is a character
 * @returns a function that returns the values of a name, in order. A query that is not valid UTF-8 has none
 */
export function readParameters(query: string): (name: string) => string[] {
  const parameters = decodeFormFields(decodeUtf8(Buffer.from(query, "latin1")) ?? "%") ?? [];
  return (wanted) => parameters.filter(([name]) => name === wanted).map(([, value]) => value);
}
