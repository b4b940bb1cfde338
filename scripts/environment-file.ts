import { chmodSync, writeFileSync } from "node:fs";

/** Writes variables for `node --env-file`. Only the owner may read the file: URLs contain passwords. */
export function writeEnvironmentFile(file: string, variables: Record<string, string>): void {
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${quote(value)}`);
  writeFileSync(file, `# Written by each start; read by \`npm run ops --\`.\n${lines.join("\n")}\n`, { mode: 0o600 });
  chmodSync(file, 0o600); // writeFileSync applies the mode only to a new file.
}

/** In quotes that the value does not contain: this format has no way to escape them. */
function quote(value: string): string {
  const mark = ["'", '"', "`"].find((candidate) => !value.includes(candidate));
  if (mark === undefined) throw new Error("A value with all three kinds of quotes can't be written to an env file");
  return `${mark}${value}${mark}`;
}
