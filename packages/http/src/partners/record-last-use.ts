import { Recorder, type Records, type SecretUse } from "@booking-events/queue";

/** Called for each request with a valid secret. */
export type RecordUse = (partner: string, secretId: string) => void;

const defaultIntervalMs = 5_000;

/**
 * Records in memory when each secret was last used, and writes it to Redis every few seconds. A request then costs an
 * entry in a map instead of a write. What cannot be written is written the next time, because an operator decides by the
 * last use whether a secret can be revoked.
 */
export function createLastUseRecorder(options: {
  write: Records["writeLastUses"];
  onError: (error: unknown) => void;
  intervalMs?: number;
}): { record: RecordUse; stop(): Promise<void> } {
  const { write, onError, intervalMs = defaultIntervalMs } = options;
  const recorder = new Recorder<SecretUse>({
    write,
    intervalMs,
    onFailure(error, uses) {
      for (const [key, use] of uses) if (recorder.get(key) === undefined) recorder.set(key, use);
      onError(error);
    },
  });
  return {
    record(partner, secretId) {
      recorder.set(`${partner}/${secretId}`, { partner, secretId, usedAt: new Date() });
    },
    stop: () => recorder.stop(),
  };
}
