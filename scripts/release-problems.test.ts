import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { published } from "./pack-package.ts";
import { readReleaseNotes } from "./release-notes.ts";
import { findPublishProblems, findReleaseProblems, noteReady } from "./release-problems.ts";
import { runCommand } from "./run-command.ts";

test("a clean clone of main whose changelog has the version can be released, and whatever is missing is named", async ({
  skip,
}) => {
  if (spawnSync("git").error) skip("there is no git");
  const folder = await mkdtemp(join(tmpdir(), "booking-events-release-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const git = (...args: string[]) => runCommand("git", args, { cwd: folder });
  const write = (file: string, text: string) => writeFile(join(folder, file), text);
  await git("init", "--quiet", "--initial-branch", "main");
  await git("remote", "add", "origin", "git@git.example.com:acme/bookings.git");
  await write("package.json", '{ "version": "1.2.3" }');
  await write("CHANGELOG.md", "## [1.2.3] - 2027-01-02\n\nIt works.\n");
  await write(".gitignore", "dist/\n");
  const repository = { url: "git+https://git.example.com/acme/bookings.git" };
  for (const name of published) {
    await mkdir(join(folder, "packages", name), { recursive: true });
    await write(`packages/${name}/package.json`, JSON.stringify({ repository }));
  }
  await git("add", ".");
  const commit = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "--quiet", "--message", "all"];
  await git(...commit);
  expect(await findReleaseProblems(folder)).toEqual([]);

  const isNotReady = [expect.stringContaining("Run `npm run release` first.")];
  expect(await findPublishProblems(folder)).toEqual(isNotReady);
  await noteReady(folder, true);
  expect(await findPublishProblems(folder)).toEqual([]);
  await write("new.txt", "");
  expect(await findPublishProblems(folder)).toEqual([expect.stringContaining("Files have changed")]);
  await git("add", ".");
  await git(...commit);
  expect(await findPublishProblems(folder)).toEqual(isNotReady);
  await noteReady(folder, true);
  await noteReady(folder, false);
  expect(await findPublishProblems(folder)).toEqual(isNotReady);

  await git("tag", "v1.2.3");
  await git("switch", "--quiet", "--create", "try");
  await git("remote", "set-url", "origin", "https://git.example.com/eve/bookings");
  await write("CHANGELOG.md", "## [Unreleased]\n\nIt works.\n");
  const problems = ["Files have changed", "branch is try", "1.2.3 is released", "## [1.2.3]", "Origin is eve/bookings"];
  expect(await findReleaseProblems(folder)).toEqual(problems.map((text) => expect.stringContaining(text)));

  await git("stash", "--quiet");
  await git("tag", "--delete", "v1.2.3");
  await git("switch", "--quiet", "--detach", "main");
  await git("remote", "remove", "origin");
  await write("newer.txt", "");
  const others = ["Files have changed", "branch is none", "Origin is none"];
  expect(await findReleaseProblems(folder)).toEqual(others.map((text) => expect.stringContaining(text)));
});

test("the notes are what the changelog says of the version, if it does", () => {
  const changelog =
    "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2027-01-02\n\n### Added\n\n- A\n\n## [1.2.2]\n\n- B\n";
  expect(readReleaseNotes(changelog, "1.2.3")).toBe("### Added\n\n- A");
  expect(readReleaseNotes(changelog, "1.2.2")).toBe("- B");
  expect(readReleaseNotes(changelog, "1.2")).toBeUndefined();
  expect(readReleaseNotes("## [1.2.3]\n\n## [1.2.2]\n\n- B\n", "1.2.3")).toBeUndefined();
});
