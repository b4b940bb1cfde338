export function readFlag(sent: string): boolean | undefined {
  return flags.get(sent) ?? (sent.length <= maxLength ? flags.get(sent.trim().toLowerCase()) : undefined);
}

/** With white space around it. */
const maxLength = 100;
const flags = new Map<string, boolean>([
  ...["true", "t", "yes", "y", "1"].map((word) => [word, true] as const),
  ...["false", "f", "no", "n", "0"].map((word) => [word, false] as const),
]);
