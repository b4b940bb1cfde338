import { appendFile, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { ObservedRequest } from "@booking-events/http";

const writeIntervalMs = 1_000;
const megabyte = 2 ** 20;
/** About seven million events. */
const defaultLimits = { fileBytes: 16 * megabyte, allBytes: 512 * megabyte };
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
  #writing: Promise<void> = Promise.resolve();

  constructor(folder: string, onError: (error: unknown) => void, limits = defaultLimits) {
    this.#folder = folder;
    this.#onError = onError;
    this.#limits = limits;
    this.#timer = setInterval(() => this.#writeLater(), writeIntervalMs).unref();
  }

  record({ outcome, partner, eventId }: ObservedRequest): void {
    if (outcome === "accepted") this.#lines.push(`${new Date().toISOString()}\t${partner}\t${eventId}\n`);
  }

  /** Writes what is left. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#writeLater();
    await this.#writing;
  }

  #writeLater(): void {
    const lines = this.#lines.splice(0).join("");
    if (lines === "") return;
    this.#writing = this.#writing.then(() => this.#write(lines)).catch(this.#onError);
  }

  async #write(lines: string): Promise<void> {
    if (this.#file === undefined || this.#file.bytes >= this.#limits.fileBytes) {
      await this.#removeOldest();
      const name = `accepted-${new Date().toISOString().replaceAll(":", "-")}-${process.pid}.tsv`;
      this.#file = { path: join(this.#folder, name), bytes: 0 };
    }
    await appendFile(this.#file.path, lines);
    this.#file.bytes += Buffer.byteLength(lines);
  }

  /** By their names, which begin with the time. */
  async #removeOldest(): Promise<void> {
    const names = (await readdir(this.#folder)).filter(isOurs).toSorted().toReversed();
    let bytes = this.#limits.fileBytes;
    for (const name of names) {
      const path = join(this.#folder, name);
      bytes += (await stat(path)).size;
      if (bytes > this.#limits.allBytes) await rm(path, { force: true });
    }
  }
}
