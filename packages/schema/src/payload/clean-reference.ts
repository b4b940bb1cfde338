/**
 * Returns a reference as it is compared, which is how the service stores it: without characters that nobody sees, such
 * as zero-width spaces, soft hyphens and byte order marks, with spaces in place of no-break spaces, in Unicode's
 * normalization form C, and without white space around it. Case counts. Cleaning a cleaned reference changes nothing.
 */
export function cleanReference(sent: string): string {
  if (tidy.test(sent)) return sent;
  const visible = sent.replace(ignorable, "").replace(noBreakSpace, " ");
  return (manyMarks.test(visible) ? visible : visible.normalize("NFC")).trim();
}

/** Nearly every reference: ASCII that can be seen, with spaces between. */
const tidy = /^[!-~]+(?: +[!-~]+)*$/;
/** Direction marks, variation selectors and fillers are among them too. */
const ignorable = /\p{Default_Ignorable_Code_Point}/gu;
const noBreakSpace = /[\u00a0\u2007\u202f]/g;
/**
 * Sorting a run of combining marks takes time that grows with its square: 8,192 of them block a process for 100 ms. No
 * text has a run as long as this: Unicode's Stream-Safe Text Format ends them after 30. A run is counted from its first
 * mark only. From each mark, many runs of 31 would take ten times as long as sorting them.
 */
const manyMarks = /(?<!\p{Mark})\p{Mark}{32}/u;
