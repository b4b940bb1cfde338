import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** @returns the tag of the release that this one replaces; undefined: there is none yet, or this copy does not know it */
export async function findPreviousRelease(): Promise<string | undefined> {
  const newestFirst = ["--sort=-version:refname", "--merged", "HEAD", "--no-contains", "HEAD"];
  // A copy of the files without Git's knows nothing of releases.
  const { stdout } = await run("git", ["tag", "--list", "v*", ...newestFirst]).catch(() => ({ stdout: "" }));
  return stdout.split("\n")[0] || undefined;
}
