import { execFileSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { commandOutput } from "./command.ts";

/**
 * Installs a package of Debian's or Ubuntu's.
 *
 * @param asRoot from {@link commandPrefixForRoot}
 * @returns what apt-get printed
 */
export async function installPackage(
  name: string,
  asRoot: readonly string[],
  signal: AbortSignal | undefined,
): Promise<string> {
  const apt = (...args: string[]) => {
    const [file = "apt-get", ...rest] = [
      ...asRoot,
      "env",
      "DEBIAN_FRONTEND=noninteractive",
      // dpkg refuses to work without these, and a bare environment lacks them.
      `PATH=${process.env["PATH"]}:/usr/local/sbin:/usr/sbin:/sbin`,
      // For Ubuntu, whose needrestart would ask.
      "NEEDRESTART_MODE=a",
      "apt-get",
      "-o",
      "DPkg::Lock::Timeout=120",
      "-o",
      "Acquire::Retries=3",
      ...args,
    ];
    return commandOutput(file, rest, { signal });
  };
  await apt("update");
  return apt("install", "-y", "--no-install-recommends", name);
}

/** What to put before a command to run it as root; undefined if that is not to be had without a password. */
export function commandPrefixForRoot(): string[] | undefined {
  if (process.getuid?.() === 0) return [];
  if (!onPath("sudo")) return undefined;
  try {
    execFileSync("sudo", ["-n", "true"], { stdio: "ignore" });
    return ["sudo", "-n"];
  } catch {
    return undefined;
  }
}

export function onPath(name: string): boolean {
  return (process.env["PATH"] ?? "")
    .split(delimiter)
    .some((folder) => folder !== "" && isExecutable(join(folder, name)));
}

export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
