import type { RecordWriter, SecretUse } from "@booking-events/queue";

/** Called for each request with a valid secret. */
export type RecordUse = (partner: string, secretId: string) => void;

export interface LastUseRecorder {
  record: RecordUse;
  /** Writes the remaining uses. Never throws. */
  stop(): Promise<void>;
}

const defaultIntervalMs = 5_000;

/**
 * Records in memory when each secret was last used, and writes it to Redis every few seconds. A request then costs an
 * entry in a map instead of a write. What cannot be written is written the next time.
 *
 * @param options.onError called for each failed write
 */
export function createLastUseRecorder(options: {
  writeLastUses: RecordWriter<SecretUse>["write"];
  onError: (error: unknown) => void;
  intervalMs?: number;
}): LastUseRecorder {
  const { writeLastUses, onError, intervalMs = defaultIntervalMs } = options;
  const uses = new Map<string, { partner: string; secretId: string; usedAt: Date }>();

  async function write(): Promise<void> {
    const written = [...uses];
    if (written.length === 0) return;
    try {
      await writeLastUses(written.map(([, use]) => use));
    } catch (error) {
      onError(error);
      return;
    }
    for (const [name, use] of written) if (uses.get(name) === use) uses.delete(name);
  }

  const timer = setInterval(() => void write(), intervalMs).unref();
  return {
    record(partner, secretId) {
      uses.set(`${partner}/${secretId}`, { partner, secretId, usedAt: new Date() });
    },
    async stop() {
      clearInterval(timer);
      await write();
    },
  };
}
