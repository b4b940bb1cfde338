/** Reads a flag: true, t, yes, y, on, 1 and their opposites, and how programs in other languages write true and false. */
export function readFlag(sent: string): boolean | undefined {
  if (sent === "true") return true;
  if (sent === "false") return false;
  const text = sent.trim();
  return text.length > maxLength ? undefined : flags.get(text.toLowerCase());
}

/** Excel writes its language's words, and pandas 1.0 in a column with gaps. */
const flags: ReadonlyMap<string, boolean> = new Map([
  ...toEntries(true, "true t yes y on 1 1.0 ja wahr oui vrai sí si sim verdadero verdadeiro vero waar"),
  ...toEntries(false, "false f no n off 0 0.0 nein falsch non faux não nao falso onwaar nee"),
]);
const maxLength = 10;

function toEntries(flag: boolean, words: string): [string, boolean][] {
  return words.split(" ").map((word) => [word, flag]);
}
