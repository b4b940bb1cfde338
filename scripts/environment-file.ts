import { chmodSync, writeFileSync } from "node:fs";

/** Writes variables in the form that `node --env-file` reads, for its owner's eyes only: URLs carry passwords. */
export function writeEnvironmentFile(file: string, variables: Record<string, string>): void {
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${quote(value)}`);
  writeFileSync(file, `# Written by each start; read by \`npm run ops --\`.\n${lines.join("\n")}\n`, { mode: 0o600 });
  chmodSync(file, 0o600); // The mode above counts only for a new file.
}

/** In whichever quotes the value does not hold: this format knows no way to escape them. */
function quote(value: string): string {
  const mark = ["'", '"', "`"].find((candidate) => !value.includes(candidate));
  if (mark === undefined) throw new Error("A value with all three kinds of quotes can't be written to an env file");
  return `${mark}${value}${mark}`;
}
