import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

/** The password in this file, which only its owner may read. The first call creates it. */
export function keepPassword(file: string): string {
  try {
    const password = readFileSync(file, "utf8").trim();
    if (password !== "") return password;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const password = randomBytes(24).toString("hex");
  writeFileSync(file, `${password}\n`, { mode: 0o600 });
  return password;
}
