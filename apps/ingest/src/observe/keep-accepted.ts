import { appendFile, readdir, rm, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import type { ObservedRequest } from "@booking-events/http";

const writeIntervalMs = 1_000;
const megabyte = 2 ** 20;
/** About seven million events. */
const defaultLimits = { fileBytes: 16 * megabyte, allBytes: 512 * megabyte };
/** What waits for a disk that takes nothing, about 70 MB. Ids beyond it are not kept. */
const maxWaiting = 1_000_000;
/** Lines of one write. Each that fails costs this process as much again. */
const maxTogether = 10_000;
/** Of the files of all ingests that share the folder. */
const isOurs = (name: string) => /^accepted-.*\.tsv$/.test(name);

/**
 * Keeps which events were accepted, in files that outlive the process and its container. If Redis loses its data, nobody
 * else knows which events it had. Each line has the time, the partner and the event's id. The oldest files are removed
 * when all together are too large.
 */
export class AcceptedRecord {
  readonly #folder: string;
  readonly #onError: (error: unknown) => void;
  readonly #limits: typeof defaultLimits;
  readonly #timer: NodeJS.Timeout;
  #lines: string[] = [];
  #file: { path: string; bytes: number } | undefined;
  #writing: Promise<void> | undefined;

  constructor(folder: string, onError: (error: unknown) => void, limits = defaultLimits) {
    this.#folder = folder;
    this.#onError = onError;
    this.#limits = limits;
    this.#timer = setInterval(() => this.#writeLater(), writeIntervalMs).unref();
  }

  record({ outcome, partner, eventId }: ObservedRequest): void {
    if (outcome !== "accepted" || this.#lines.length >= maxWaiting) return;
    this.#lines.push(`${new Date().toISOString()}\t${partner}\t${eventId}\n`);
  }

  /** Writes what is left. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#writing;
    this.#writeLater();
    await this.#writing;
  }

  /** Unless a write is under way: then the next one takes these lines, too. */
  #writeLater(): void {
    if (this.#lines.length === 0 || this.#writing !== undefined) return;
    this.#writing = this.#writeWaiting()
      .catch(this.#onError)
      .finally(() => {
        this.#writing = undefined;
      });
  }

  async #writeWaiting(): Promise<void> {
    while (this.#lines.length > 0) {
      const lines = this.#lines.slice(0, maxTogether);
      await this.#write(lines.join(""));
      this.#lines.splice(0, lines.length);
    }
  }

  async #write(lines: string): Promise<void> {
    if (this.#file === undefined || this.#file.bytes >= this.#limits.fileBytes) {
      await this.#removeOldest();
      const name = `accepted-${new Date().toISOString().replaceAll(":", "-")}-${process.pid}.tsv`;
      this.#file = { path: join(this.#folder, name), bytes: 0 };
    }
    try {
      await appendFile(this.#file.path, lines);
    } catch (error) {
      // What a full disk took of them would be there twice, and end in the middle of a line.
      await truncate(this.#file.path, this.#file.bytes).catch(() => {});
      throw error;
    }
    this.#file.bytes += Buffer.byteLength(lines);
  }

  /** By their names, which begin with the time. */
  async #removeOldest(): Promise<void> {
    const names = (await readdir(this.#folder)).filter(isOurs).toSorted().toReversed();
    let bytes = this.#limits.fileBytes;
    for (const name of names) {
      const path = join(this.#folder, name);
      bytes += await sizeOf(path);
      if (bytes > this.#limits.allBytes) await rm(path, { force: true });
    }
  }
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    // Another ingest has removed it.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
}
