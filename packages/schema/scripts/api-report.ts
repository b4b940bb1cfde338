import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const packageFolder = fileURLToPath(new URL("../", import.meta.url));
const compiler = join(packageFolder, "../../node_modules/.bin/tsc");
const entries = ["index.d.ts", "client/index.d.ts", "testing/index.d.ts"];

/**
 * Returns the declarations that programs see: those of the entries, and of all files that these import. A change of
 * the package's interface is then a change of this text, which a review shows.
 */
export function buildApiReport(): string {
  const folder = mkdtempSync(join(tmpdir(), "api-report-"));
  try {
    const options = ["--emitDeclarationOnly", "--removeComments", "--outDir", folder];
    execFileSync(compiler, ["-p", packageFolder, ...options]);
    const files = findImported(folder, entries);
    return files.map((file) => `// ${file}\n${readFileSync(join(folder, file), "utf8")}`).join("\n");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function findImported(folder: string, starts: readonly string[]): string[] {
  const found = new Set(starts);
  for (const file of found) {
    const declarations = readFileSync(join(folder, file), "utf8");
    for (const [, specifier = ""] of declarations.matchAll(/(?:\bfrom|\bimport\() ?"(\.[^"]+)\.ts"/g)) {
      found.add(relative(folder, join(folder, dirname(file), `${specifier}.d.ts`)));
    }
  }
  return [...found];
}
