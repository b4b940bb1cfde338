import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runOps } from "./testing/run-ops.ts";

const root = join(import.meta.dirname, "../../..");
const pages = ["docs/runbook.md", ...globSync("docs/operations/*.md", { cwd: root })];
const rules = globSync("deploy/observability/rules/*.yml", { cwd: root });

const read = (path: string) => readFileSync(join(root, path), "utf8");
/** From the second section on. The first one of start.md says how to type commands without Compose. */
const readSections = (page: string) => read(page).slice(read(page).indexOf("\n## "));

/** What follows the name of ops in code. */
function findCommands(text: string): string[] {
  const named = text.matchAll(
    /(?:deploy\/ops|kubernetes\/ops(?: --as-owner)?|compose run --rm (?:ops|migrate)|[`:] ops) ([a-z-][^`#|"\n]*)/g,
  );
  return Array.from(named, ([, command = ""]) => command.trim());
}

test.each([...pages, ...rules])("%s names commands and options that exist", async (page) => {
  for (const command of findCommands(read(page))) {
    const tokens = command.split(/\s+/);
    const isName = (token: string) => /^[a-z][a-z-]*$/.test(token);
    const firstOther = tokens.findIndex((token) => !isName(token));
    const names = firstOther === -1 ? tokens : tokens.slice(0, firstOther);
    if (names.length === 0) continue;
    const { stdout } = await runOps([...names, "--help"]);
    const [, found = "", hasCommands] = /^Usage: ops ([a-z -]+?) \[options\]( \[command\])?/.exec(stdout) ?? [];
    expect([command, found]).toEqual([command, names.slice(0, found.split(" ").length).join(" ")]);
    if (hasCommands !== undefined) expect(command).toBe(found);
    for (const option of tokens.filter((token) => /^--[a-z]/.test(token))) expect(stdout).toContain(option);
  }
});

test.each(pages)("%s shows commands as they are typed with Compose", (page) => {
  const lines = readSections(page).split("\n");
  // Kubernetes has the partners file elsewhere, so it is changed from the sources.
  const typed = lines.filter((line) => !line.startsWith("PARTNERS_FILE="));
  const elsewhere = typed.filter((line) => /(^ *|`|\| |> )(psql|redis-cli|npm run (-s )?ops)\b/.test(line));
  expect(elsewhere).toEqual([]);
});

test("a command or an option that does not exist would be found", () => {
  expect(findCommands("`deploy/ops partners lst acme`, and `docker compose run --rm migrate maintain`")).toEqual([
    "partners lst acme",
    "maintain",
  ]);
});
