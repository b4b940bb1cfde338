import { otherReferenceNames } from "../warnings/names-of-references.ts";
import { createSimilarNameFinder } from "../warnings/similar-name.ts";
import { isPlainObject } from "./plain-object.ts";

/** In the payload and its members together. */
const maxNames = 50;

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
  for (const name in payload) {
    if (left === 0) break;
    left -= 1;
    const value = payload[name];
    const sighting = lookAtName(name, value);
    if (sighting !== undefined) sightings.push(sighting);
    if (!isPlainObject(value)) continue;
    for (const inner in value) {
      if (left === 0) break;
      left -= 1;
      const inMember = lookAtNameInMember(name, inner);
      if (inMember !== undefined) sightings.push(inMember);
    }
  }
  return sightings;
}

/** `booking[reference]`, as PHP and others write a member of an object into a form. */
const nameInBrackets = /^([^[\]]+)\[([^[\]]+)\]$/;

/** As it begins if a form was written into HTML, and sent without decoding the `&amp;` again. */
const separatorInHtml = "amp;";

function lookAtName(sent: string, value: unknown): Sighting | undefined {
  const isAfterSeparator = sent.startsWith(separatorInHtml);
  const name = isAfterSeparator ? sent.slice(separatorInHtml.length) : sent;
  const similar = findSimilarName(name);
  if (similar === undefined) {
    const [, member, inner] = nameInBrackets.exec(name) ?? [];
    return member === undefined || inner === undefined ? undefined : lookAtNameInMember(member, inner);
  }
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

function lookAtNameInMember(member: string, name: string): Sighting | undefined {
  const similar = findSimilarName(name);
  if (similar === undefined) return undefined;
  const { listed, isSpelledAlike } = similar;
  const sentence = `There is ${quote(name)} in ${quote(member)}. Send the fields of that object as the payload itself`;
  return isSpelledAlike
    ? { place: "in a member", sentence: name === listed ? `${sentence}.` : `${sentence}, and name it ${listed}.` }
    : { place: "in a member, by another name", sentence: `${sentence}, with the reference as ${listed}.` };
}

/** A name that does not look like one may be data. */
function quote(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_. -]{0,63}$/.test(name) && !/\d\D*\d\D*\d/.test(name) ? `"${name}"` : "a field";
}
