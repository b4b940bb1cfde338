import { existsSync } from "node:fs";
import { chmod, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** Which program has the clock. */
type ProgramKind = "redis" | "postgres" | "node";

/** A clock of one server or process, which can be set while that runs. The machine's clock stays as it is. */
export class FakeClock {
  readonly #file: string;
  /** For the process whose clock it is. */
  readonly environment: Readonly<Record<string, string>>;

  private constructor(file: string, environment: Record<string, string>) {
    this.#file = file;
    this.environment = environment;
  }

  /** @param faketime where libfaketime is */
  static async create(faketime: string, kind: ProgramKind, aheadMs = 0): Promise<FakeClock> {
    // PostgreSQL's own user must get to it.
    const dir = await mkdtemp(join(tmpdir(), "booking-events-clock-"));
    await chmod(dir, 0o755);
    const clock = new FakeClock(join(dir, "ahead"), {
      LD_PRELOAD: preload(faketime, kind),
      FAKETIME_TIMESTAMP_FILE: join(dir, "ahead"),
      // In seconds. Without it, Redis would read the file several times for each command of its append-only file.
      FAKETIME_CACHE_DURATION: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    });
    await clock.set(aheadMs);
    return clock;
  }

  /** The process shows it within a second. @param aheadMs of this machine's clock; negative: behind it */
  async set(aheadMs: number): Promise<void> {
    // It must be complete at any time.
    await writeFile(`${this.#file}.new`, `${aheadMs < 0 ? "" : "+"}${aheadMs / 1_000}`, { mode: 0o644 });
    await rename(`${this.#file}.new`, this.#file);
  }

  async remove(): Promise<void> {
    await rm(dirname(this.#file), { recursive: true, force: true });
    await removeLeftovers();
  }
}

function preload(faketime: string, kind: ProgramKind): string {
  switch (kind) {
    case "redis":
      // Debian's Redis uses jemalloc, which asks for the time before libfaketime can answer. libc's malloc does not.
      return `${faketime} libc.so.6`;
    case "postgres":
      return faketime;
    case "node":
      return faketime.replace("libfaketime.so", "libfaketimeMT.so");
  }
}

const sharedMemory = "/dev/shm";

/** libfaketime shares memory with child processes, and leaves it when its process is killed. */
async function removeLeftovers(): Promise<void> {
  for (const name of await readdir(sharedMemory)) {
    const [, pid] = /^(?:faketime_shm|sem\.faketime_sem)_(\d+)$/.exec(name) ?? [];
    if (pid !== undefined && !existsSync(join("/proc", pid))) await rm(join(sharedMemory, name), { force: true });
  }
}
