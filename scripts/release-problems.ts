import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { published } from "./pack-package.ts";
import { readReleaseNotes } from "./release-notes.ts";
import { runCommand } from "./run-command.ts";

/** @returns what stands against a release of what is in the folder, and what to do about it */
export async function findReleaseProblems(folder: string): Promise<string[]> {
  const git = async (...args: string[]) => (await runCommand("git", args, { cwd: folder })).trim();
  const read = (file: string) => readFile(join(folder, file), "utf8");
  const { version } = JSON.parse(await read("package.json"));
  const problems: string[] = [];

  if ((await git("status", "--porcelain")) !== "") problems.push("Files have changed. Commit or remove them.");
  const branch = await git("branch", "--show-current");
  if (branch !== "main") problems.push(`The branch is ${branch || "none"}. Release from main.`);
  if ((await git("tag", "--list", `v${version}`)) !== "")
    problems.push(`${version} is released. Raise it in package.json; \`npm test -- versions\` says where else.`);
  if (readReleaseNotes(await read("CHANGELOG.md"), version) === undefined)
    problems.push(`CHANGELOG.md has no text under \`## [${version}]\`. Rename the heading of what is unreleased.`);

  const origin = readRepository(await git("remote", "get-url", "origin").catch(() => ""));
  const others: string[] = [];
  for (const name of published) {
    const file = `packages/${name}/package.json`;
    if (readRepository(JSON.parse(await read(file)).repository.url) !== origin) others.push(file);
  }
  if (others.length > 0)
    problems.push(
      `Origin is ${origin ?? "none"}. npm compares it with the repository in ${others.join(", ")}: set that.`,
    );
  return problems;
}

/** Notes whether what is in dist/release can be published, and of which commit it is. */
export async function noteReady(folder: string, isReady: boolean): Promise<void> {
  await mkdir(join(folder, "dist"), { recursive: true });
  if (isReady) await writeFile(readyFile(folder), await readCommit(folder));
  else await rm(readyFile(folder), { force: true });
}

/** @returns what stands against publishing what is in dist/release */
export async function findPublishProblems(folder: string): Promise<string[]> {
  const commit = await readFile(readyFile(folder), "utf8").catch(() => undefined);
  if (commit === (await readCommit(folder))) return findReleaseProblems(folder);
  return ["dist/release is missing, not ready, or of another commit. Run `npm run release` first."];
}

function readyFile(folder: string): string {
  return join(folder, "dist/release-ready");
}

function readCommit(folder: string): Promise<string> {
  return runCommand("git", ["rev-parse", "HEAD"], { cwd: folder });
}

/** @returns the owner and the name at the end of an address of Git, whatever its form */
function readRepository(url: string): string | undefined {
  return /([\w.-]+\/[\w.-]+?)(\.git)?\/?$/.exec(url)?.[1];
}
