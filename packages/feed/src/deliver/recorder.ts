import type { Progress } from "./deliveries.ts";
import type { ActiveConsumer } from "./host.ts";

/** While something finishes all the time, progress is recorded no more often. */
const intervalMs = 50;

/** Records the progress of many consumers together. */
export class Recorder {
  readonly #record: (progress: Progress[]) => Promise<Progress[]>;
  readonly #onLost: (consumer: ActiveConsumer) => void;
  readonly #noted = new Set<ActiveConsumer>();
  #timer: NodeJS.Timeout | undefined;
  #recording: Promise<void> | undefined;

  /** @param record returns the progress of those whose leases are still held */
  constructor(record: (progress: Progress[]) => Promise<Progress[]>, onLost: (consumer: ActiveConsumer) => void) {
    this.#record = record;
    this.#onLost = onLost;
  }

  note(consumer: ActiveConsumer, isUrgent: boolean): void {
    this.#noted.add(consumer);
    if (isUrgent) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), intervalMs);
  }

  /** @returns when everything that has been noted is recorded, or can't be any more */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#recording ??= this.#recordAll().finally(() => {
      this.#recording = undefined;
    });
    await this.#recording;
  }

  async #recordAll(): Promise<void> {
    while (this.#noted.size > 0) {
      const taken = [...this.#noted].flatMap((consumer) => {
        const progress = consumer.takeProgress();
        return progress === null ? [] : [{ consumer, progress }];
      });
      this.#noted.clear();
      if (taken.length === 0) return;
      let held: Set<Progress>;
      try {
        held = new Set(await this.#record(taken.map(({ progress }) => progress)));
      } catch {
        // The process stops.
        return;
      }
      for (const { consumer, progress } of taken) {
        if (held.has(progress)) consumer.recorded();
        else this.#onLost(consumer);
      }
    }
  }
}
