import { readdirSync, readFileSync } from "node:fs";

const folder = new URL("../examples/", import.meta.url);

/**
 * Returns the module with all examples, for programs that cannot read files. The examples stay text, because a literal
 * would lose fields named `__proto__` and digits of numbers.
 */
export function buildExamplesModule(): string {
  const fileNames = readdirSync(folder).filter((fileName) => fileName.endsWith(".json"));
  const texts = fileNames.toSorted().map((fileName) => {
    const lines = readFileSync(new URL(fileName, folder), "utf8").split("\n");
    const text = lines.map((line) => line.trim()).join("");
    return `  ${JSON.stringify(text.replace("{", `{"name":"${fileName.replace(".json", "")}",`))},\n`;
  });
  return `// biome-ignore-all format: Generated from examples/ by \`npm run json-schema\`.
import { parseJson } from "../json/parse-json.ts";
import type { Example } from "./example.ts";

const texts = [
${texts.join("")}];

/** Valid and invalid payloads: at least one for each rule that a payload can break. */
export const examples: readonly Example[] = texts.map((text) => parseJson(text) as Example);
`;
}
