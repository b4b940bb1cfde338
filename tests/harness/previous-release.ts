import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * @returns the tag of the release that this one replaces; undefined: there is none yet, or this copy does not know it
 * @throws if the copy is a shallow clone in CI, where nobody would notice that tests of releases are skipped; with
 *   `needsGit`, also if it is no clone there, or git does not trust its folder
 */
export async function findPreviousRelease({
  folder = ".",
  isCi = "CI" in process.env,
  needsGit = false,
} = {}): Promise<string | undefined> {
  // A copy of the files without Git's knows nothing of releases.
  const git = (...args: string[]) =>
    run("git", args, { cwd: folder }).catch((error) => {
      if (isCi && needsGit) throw error;
      return { stdout: "" };
    });
  const { stdout: isShallow } = await git("rev-parse", "--is-shallow-repository");
  if (isCi && isShallow.trim() === "true")
    throw new Error("This clone is shallow, so it does not know the releases. Check out with fetch-depth: 0.");
  const newestFirst = ["--sort=-version:refname", "--merged", "HEAD", "--no-contains", "HEAD"];
  const { stdout } = await git("tag", "--list", "v*", ...newestFirst);
  return stdout.split("\n")[0] || undefined;
}
