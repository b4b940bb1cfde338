import { existsSync, readFileSync, statfsSync } from "node:fs";
import { type Check, ok, problem, unknown } from "./check.ts";

/** Clocks that are synchronized differ by milliseconds. */
const maxClockDifferenceMs = 1_000;
const minFreeShare = 0.1;
/** On a large disk, a small share is enough. */
const enoughFreeBytes = 10 * 2 ** 30;

export function isLoopback({ hostname }: URL): boolean {
  return hostname === "" || hostname === "localhost" || hostname === "[::1]" || /^127\./.test(hostname);
}

/** A name without a dot is one of a private network, such as that of Compose or Kubernetes, and so are some addresses. */
export function isInPrivateNetwork({ hostname }: URL): boolean {
  const isName = !hostname.includes(".") && !hostname.includes(":");
  return isName || /^(10|192\.168|172\.(1[6-9]|2\d|3[01]))\.[\d.]+$/.test(hostname);
}

export function checkEncryption(server: string, url: URL, isEncrypted: boolean, remedy: string): Check {
  const subject = {
    name: `The connection to ${server} is encrypted`,
    why: "Otherwise the network sees guests' data and the password.",
  };
  if (isEncrypted) return ok(subject, "TLS");
  if (isLoopback(url)) return ok(subject, "it stays on this host");
  if (isInPrivateNetwork(url)) return unknown(subject, `no; only the network protects ${url.hostname}`, remedy);
  return problem(subject, "no", remedy);
}

export function checkClock(server: string, aheadMs: number): Check {
  const subject = {
    name: `The clock of ${server} is right`,
    why: "Times decide the order of events, what is a repetition, and what is old.",
  };
  const seconds = (Math.abs(aheadMs) / 1_000).toFixed(1);
  return Math.abs(aheadMs) <= maxClockDifferenceMs
    ? ok(subject, "as this host's")
    : problem(
        subject,
        `${seconds} s ${aheadMs > 0 ? "ahead of" : "behind"} this host's`,
        "On the host with the wrong clock: timedatectl set-ntp true",
      );
}

/** @param folder where the server has its data; null: it does not tell */
export function checkDisk(server: string, url: URL, folder: string | null): Check {
  const subject = { name: `${server} has space on its disk`, why: "With a full disk, no event is stored." };
  if (!isLoopback(url) || folder === null || !existsSync(folder)) {
    return unknown(subject, "not visible from this host", "On its host: df -h");
  }
  const { bavail, blocks, bsize } = statfsSync(folder);
  const percent = Math.round((100 * bavail) / Math.max(1, blocks));
  return hasSpace({ freeBytes: bavail * bsize, bytes: blocks * bsize })
    ? ok(subject, `${percent} % free`)
    : problem(subject, `${percent} % free`, `Make space, or move it to a larger disk: du -sh ${folder}`);
}

const overcommitFile = "/proc/sys/vm/overcommit_memory";

/**
 * Redis forks to rewrite its append-only file. Without overcommitment, Linux refuses that to a process that uses half of the
 * memory. All containers of a host have the setting of its kernel.
 *
 * @param file where Linux shows the setting; a system without it has no such limit
 */
export function checkOvercommit(url: URL, file: string = overcommitFile): Check {
  const subject = {
    name: "Linux lets Redis fork",
    why: "Otherwise Redis cannot rewrite its append-only file, which grows until the disk is full.",
  };
  const remedy = "On Redis' host: sysctl vm.overcommit_memory=1, and the same in /etc/sysctl.d";
  if (!isLoopback(url)) return unknown(subject, "not visible from this host", remedy);
  if (!existsSync(file)) return ok(subject, "this is no Linux");
  const setting = readFileSync(file, "utf8").trim();
  return setting === "1"
    ? ok(subject, "vm.overcommit_memory is 1")
    : problem(subject, `vm.overcommit_memory is ${setting}`, remedy);
}

export function hasSpace({ freeBytes, bytes }: { freeBytes: number; bytes: number }): boolean {
  return freeBytes >= Math.min(minFreeShare * bytes, enoughFreeBytes);
}
