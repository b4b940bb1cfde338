import { isPartnerId, isUuid, noPartnerId } from "@booking-events/operations";
import { cleanReference } from "@booking-events/schema";
import { InvalidArgumentError, Option } from "@commander-js/extra-typings";

/** Of commands that list something. */
export function limitOption(initial: number, maximum: number) {
  const parse = (text: string) => {
    const limit = Number(text);
    if (!/^\d+$/.test(text) || limit < 1 || limit > maximum) {
      throw new InvalidArgumentError(`Give a whole number from 1 to ${maximum}.`);
    }
    return limit;
  };
  return new Option("--limit <number>", `maximum number, up to ${maximum}`).argParser(parse).default(initial);
}

/** @param what such as: only events */
export function partnerOption(what: string) {
  return new Option("--partner <id>", `${what} of this partner`).argParser(parsePartnerId);
}

/** What can't be an id is no partner's, and must not be recorded: it may be anything. */
function parsePartnerId(text: string): string {
  if (!isPartnerId(text)) throw new InvalidArgumentError(noPartnerId);
  return text;
}

/** Parses a text that is recorded, and must not be empty. */
export function parseNote(text: string): string {
  const note = text.trim();
  if (note === "") throw new InvalidArgumentError("Must not be empty.");
  return note;
}

/**
 * Node replaces bytes that are not UTF-8 by U+FFFD, and the reference could be another booking's.
 *
 * @returns the reference as it is compared
 * @throws InvalidArgumentError
 */
export function parseReference(text: string): string {
  if (text.includes("\ufffd")) throw new InvalidArgumentError(notDecoded);
  const reference = cleanReference(text);
  if (reference === "") throw new InvalidArgumentError("Must not be empty.");
  return reference;
}

export const notDecoded =
  "It holds U+FFFD, which stands for bytes that are not UTF-8. Check the terminal's encoding, or find the booking by an event.";

export function parseEventId(text: string): string {
  if (!isUuid(text)) {
    throw new InvalidArgumentError("The id of an event is a UUID, such as 0199a6f2-7c1e-7d0a-9d4b-3f1a2b4c5d6e.");
  }
  return text.toLowerCase();
}
