import { otherReferenceNames } from "../warnings/names-of-references.ts";
import { createSimilarNameFinder } from "../warnings/similar-name.ts";
import { isPlainObject } from "./plain-object.ts";

/** In the payload and all that is in it together. */
const maxNames = 50;
/** Of wrappers, such as `data` and then `booking`. */
const maxWrappers = 3;

const findSimilarName = createSimilarNameFinder(
  ["consumerTripPartnerExternalReference", "consumerPartnerExternalReference"],
  otherReferenceNames,
);

/** Where a reference may be, the most certain first. */
const places = ["spelled otherwise", "in a member", "by another name", "in a member, by another name"] as const;
interface Sighting {
  place: (typeof places)[number];
  /** For the sender. */
  sentence: string;
}

/**
 * Says what a payload without a reference has instead: the same name spelled otherwise, behind a byte order mark, in a
 * wrapper, or a name that means the same. It quotes names, and no value.
 *
 * @returns a sentence, or nothing if there is nothing to say
 */
export function describeSeenInstead(payload: object): string | undefined {
  const sightings = findSightings(payload as Record<string, unknown>);
  const best = places.flatMap((place) => sightings.filter((sighting) => sighting.place === place))[0];
  return best?.sentence;
}

function findSightings(payload: Record<string, unknown>): Sighting[] {
  const sightings: Sighting[] = [];
  let left = maxNames;
  function lookInto(object: Record<string, unknown>, wrappers: readonly string[], isInArray: boolean): void {
    for (const name in object) {
      if (left === 0) return;
      left -= 1;
      const value = object[name];
      const sighting =
        wrappers.length === 0 ? lookAtName(name, value) : lookAtNameInWrapper({ name, wrappers, isInArray });
      if (sighting !== undefined) sightings.push(sighting);
      const [inner = value] = Array.isArray(value) ? value : [];
      if (!isPlainObject(inner) || wrappers.length === maxWrappers) continue;
      lookInto(inner, [...wrappers, name], isInArray || Array.isArray(value));
    }
  }
  lookInto(payload, [], false);
  return sightings;
}

/** As a name begins if a form was written into HTML, and sent without decoding the `&amp;` again. */
export const separatorInHtml = "amp;";

function lookAtName(sent: string, value: unknown): Sighting | undefined {
  const isAfterSeparator = sent.startsWith(separatorInHtml);
  const name = isAfterSeparator ? sent.slice(separatorInHtml.length) : sent;
  const similar = findSimilarName(name);
  if (similar === undefined) return lookAtNameInBrackets(name);
  const { listed, isSpelledAlike } = similar;
  if (isAfterSeparator)
    return { place: "spelled otherwise", sentence: "The form is joined by &amp;. Join its fields by & alone." };
  if (!isSpelledAlike) {
    if (typeof value !== "string" && typeof value !== "number") return undefined;
    return {
      place: "by another name",
      sentence: `There is ${quote(name)}. If it is the reference, name it ${listed}.`,
    };
  }
  if (name.startsWith("\ufeff"))
    return { place: "spelled otherwise", sentence: `There is a byte order mark before ${listed}. Remove it.` };
  return { place: "spelled otherwise", sentence: `There is ${quote(name)}. Name it ${listed}.` };
}

/** `booking[reference]` and `bookings[0][reference]`, as PHP and others write the members of an object into a form. */
function lookAtNameInBrackets(sent: string): Sighting | undefined {
  if (!nameInBrackets.test(sent)) return undefined;
  const parts = sent.replaceAll("]", "").split("[");
  const name = parts.pop() ?? "";
  const wrappers = parts.filter((part) => !/^[0-9]*$/.test(part));
  return lookAtNameInWrapper({ name, wrappers, isInArray: wrappers.length < parts.length });
}

const nameInBrackets = new RegExp(`^[^[\\]]+(?:\\[[^[\\]]*\\]){1,${maxWrappers}}$`);

interface NameInWrapper {
  name: string;
  /** From the outside in. */
  wrappers: readonly string[];
  /** Whether one of them is an array. */
  isInArray: boolean;
}

function lookAtNameInWrapper({ name, wrappers, isInArray }: NameInWrapper): Sighting | undefined {
  const similar = findSimilarName(name);
  if (similar === undefined) return undefined;
  const { listed, isSpelledAlike } = similar;
  const where = [name, ...wrappers.toReversed()].map(quote).join(" in ");
  const advice = isInArray
    ? "Send an event for each object of the array, with its fields as the payload itself"
    : "Send the fields of that object as the payload itself";
  const sentence = `There is ${where}. ${advice}`;
  return isSpelledAlike
    ? { place: "in a member", sentence: name === listed ? `${sentence}.` : `${sentence}, and name it ${listed}.` }
    : { place: "in a member, by another name", sentence: `${sentence}, with the reference as ${listed}.` };
}

/** A name that does not look like one may be data. */
function quote(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_. -]{0,63}$/.test(name) && !/\d\D*\d\D*\d/.test(name) ? `"${name}"` : "a field";
}
