import { join } from "node:path";
import { binary, root } from "./clone.ts";
import { runCommand } from "./run-command.ts";

/** The packages that a registry gets, each after those that it needs. */
export const published = ["schema", "feed", "conformance"] as const;

/** Packs what has been built into a folder, which is an absolute path. @returns the path of the tarball */
export async function packPackage(name: string, folder: string): Promise<string> {
  const args = ["pack", "--json", "--pack-destination", folder];
  return JSON.parse(await runCommand(binary("pnpm"), args, { cwd: join(root, "packages", name) })).filename;
}
