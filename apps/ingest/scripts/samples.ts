import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { Sample } from "./code.ts";

/** By what they do, such as `send`: the same in each language. */
export type Samples = ReadonlyMap<string, Sample[]>;

const files: (Omit<Sample, "text"> & { file: string })[] = [
  { id: "curl", name: "curl", file: "curl.sh", language: "bash" },
  { id: "typescript", name: "TypeScript", file: "typescript.ts", language: "typescript" },
  { id: "python", name: "Python", file: "python.py", language: "python" },
  { id: "php", name: "PHP", file: "php.php", language: "php" },
  { id: "java", name: "Java", file: "java.java", language: "java" },
  { id: "csharp", name: "C#", file: "csharp.cs", language: "csharp" },
];

export function readSamples(folder: URL): Samples {
  if (!existsSync(folder)) return new Map();
  return new Map(readdirSync(folder).map((name) => [name, readSample(new URL(`${name}/`, folder))]));
}

function readSample(folder: URL): Sample[] {
  return files.flatMap(({ file, ...sample }) => {
    const url = new URL(file, folder);
    return existsSync(url) ? [{ ...sample, text: withoutPreamble(readFileSync(url, "utf8")) }] : [];
  });
}

/** Which program runs a file is no part of what it shows. */
function withoutPreamble(text: string): string {
  return text.replace(/^#!.*\n/, "");
}
