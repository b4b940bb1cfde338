/** Longer names are not compared. The longest listed name has 36 characters. */
const maxNameLength = 64;
/** A shorter name is often within two edits of another word. */
const minLengthForEdits = 8;
const maxEdits = 2;
/** A partner's events have the same unlisted names, and a comparison takes as long as 20 look-ups. */
const maxRememberedNames = 1_000;

/** A listed name that a sender probably meant. */
export interface SimilarName<Name extends string> {
  listed: Name;
  /** Whether both are nearly the same, or else mean the same. */
  isSpelledAlike: boolean;
}

/**
 * Returns a function that finds the listed name that a sender probably meant: one with the same letters and digits, in
 * any case and with any separators; one with the same meaning; or one with at most two characters inserted, removed or
 * replaced.
 *
 * Names with digits must have the same letters and digits: consumerPhone2 is a second phone number, not a typing error.
 *
 * @param otherNames names that mean a listed one, by that one. Those of other listed names are left out
 */
export function createSimilarNameFinder<Name extends string>(
  listedNames: readonly Name[],
  otherNames: Partial<Record<string, readonly string[]>> = {},
): (name: string) => SimilarName<Name> | undefined {
  const byLetters = new Map<string, SimilarName<Name>>();
  for (const listed of listedNames) {
    for (const letters of (otherNames[listed] ?? []).map(lettersOf)) {
      byLetters.set(letters, { listed, isSpelledAlike: isWithin(maxEdits, letters, lettersOf(listed)) });
    }
  }
  const spellings = listedNames.map((listed) => ({ listed, isSpelledAlike: true, letters: lettersOf(listed) }));
  for (const spelling of spellings) byLetters.set(spelling.letters, spelling);
  const remembered = new Map<string, SimilarName<Name> | undefined>();

  function compare(name: string): SimilarName<Name> | undefined {
    const letters = lettersOf(name);
    const same = byLetters.get(letters);
    if (same !== undefined || letters.length < minLengthForEdits || /[0-9]/.test(letters)) return same;
    return spellings.find((listed) => isWithin(maxEdits, letters, listed.letters));
  }

  return (name) => {
    if (name.length > maxNameLength) return undefined;
    if (remembered.has(name)) return remembered.get(name);
    if (remembered.size === maxRememberedNames) remembered.clear();
    const similar = compare(name);
    remembered.set(name, similar);
    return similar;
  };
}

/** `consumer_given-Name` becomes `consumergivenname`. */
function lettersOf(name: string): string {
  return name.replace(/[^A-Za-z0-9]/g, "").toLowerCase();
}

/** Whether one text becomes the other by at most so many insertions, removals and replacements of a character. */
function isWithin(edits: number, one: string, other: string, oneStart = 0, otherStart = 0): boolean {
  let [i, j] = [oneStart, otherStart];
  if (Math.abs(one.length - i - (other.length - j)) > edits) return false;
  while (i < one.length && one[i] === other[j]) {
    i += 1;
    j += 1;
  }
  // The lengths differ by no more than the edits that are left.
  if (i === one.length || j === other.length) return true;
  return (
    edits > 0 &&
    (isWithin(edits - 1, one, other, i + 1, j + 1) ||
      isWithin(edits - 1, one, other, i + 1, j) ||
      isWithin(edits - 1, one, other, i, j + 1))
  );
}
