import { globSync } from "node:fs";
import { commandPrefixForRoot, installPackage, onPath } from "./apt-get.ts";

/** Where Debian and its kin have it. */
const place = "/usr/lib/*-linux-gnu/faketime/libfaketime.so.1";

/** The library that shows a program another time than the machine's, if this machine has it. */
export function findFaketime(): string | undefined {
  return globSync(place)[0];
}

/** Installs it where that needs nobody's help, as Redis is. Nothing depends on it but the harness's clock steps. */
export async function installFaketime({
  say,
  signal,
}: {
  say: (text: string) => void;
  signal?: AbortSignal;
}): Promise<void> {
  const asRoot = commandPrefixForRoot();
  if (findFaketime() !== undefined || !onPath("apt-get") || !asRoot) return;
  say("No libfaketime on this machine: installing it with apt-get, so that the clock of a Redis can be set.");
  try {
    await installPackage("libfaketime", asRoot, signal);
  } catch (error) {
    signal?.throwIfAborted();
    say(`It could not be installed: no clock will be set. ${error}`);
  }
}
