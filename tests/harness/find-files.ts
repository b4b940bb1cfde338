import { globSync } from "node:fs";
import { basename, join } from "node:path";

/** In a working copy and not in a clone. */
const made = ["node_modules", "dist", ".data", ".git", "backups"];

/** The repository's files of a pattern, with their paths from the root. It needs no git, which a machine may lack. */
export function findFiles(pattern: string): string[] {
  return globSync(pattern, {
    cwd: join(import.meta.dirname, "../.."),
    exclude: (path) => made.includes(basename(path)),
  });
}
