import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** @returns the code of a page's only block in a language that has a text */
export function readGuideCode(page: string, language: "ts" | "python" | "php", text: string): string {
  const blocks = readFileSync(join(root, page), "utf8").matchAll(/^```(\w+)\n(.*?)^```$/gms);
  const [code, ...others] = [...blocks].flatMap(([, name, block = ""]) =>
    name === language && block.includes(text) ? [block] : [],
  );
  if (code === undefined || others.length > 0)
    throw new Error(`${page} has not one block of ${language} with ${text}.`);
  return code;
}

/** A language whose program this machine may lack. Its tests are then skipped, and their title says so. */
export function findLanguage(name: string, program: string, needs: string[]) {
  const isHere = spawnSync(program, needs).status === 0;
  return { program, isHere, title: isHere ? name : `${name} (${program} is missing)` };
}
