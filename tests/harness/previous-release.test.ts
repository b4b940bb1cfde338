import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { findPreviousRelease } from "./previous-release.ts";

const folder = mkdtempSync(join(tmpdir(), "booking-events-releases-"));
afterAll(() => rmSync(folder, { recursive: true }));

const whole = join(folder, "whole");
const author = ["-c", "commit.gpgsign=false", "-c", "user.name=test", "-c", "user.email=test@example.com"];
const git = (...args: string[]) => execFileSync("git", [...author, ...args], { stdio: "pipe" });

test("the previous release is the newest tag before this commit, and a shallow clone in CI fails", async ({ skip }) => {
  if (spawnSync("git").error) skip("there is no git");
  git("init", "--quiet", whole);
  for (const tag of ["v0.9.0", "v0.10.0", "v0.11.0"]) {
    git("-C", whole, "commit", "--quiet", "--allow-empty", "--message", tag);
    git("-C", whole, "tag", tag);
  }
  expect(await findPreviousRelease({ folder: whole, isCi: true })).toBe("v0.10.0");

  const shallow = join(folder, "shallow");
  git("clone", "--quiet", "--depth", "1", `file://${whole}`, shallow);
  await expect(findPreviousRelease({ folder: shallow, isCi: true })).rejects.toThrow("fetch-depth: 0");
  expect(await findPreviousRelease({ folder: shallow, isCi: false })).toBeUndefined();
});

test("a copy without Git's files knows no release; in CI, a test that needs one fails", async () => {
  const copy = join(folder, "copy");
  mkdirSync(copy);
  expect(await findPreviousRelease({ folder: copy, isCi: true })).toBeUndefined();
  expect(await findPreviousRelease({ folder: copy, isCi: false, needsGit: true })).toBeUndefined();
  await expect(findPreviousRelease({ folder: copy, isCi: true, needsGit: true })).rejects.toThrow("git");
});
