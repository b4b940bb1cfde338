const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Such as "90s" or "1d". */
export type Duration = `${number}${keyof typeof unitMs}`;

export interface Durations {
  /** As PromQL writes it. */
  text: (duration: Duration) => string;
  seconds: (duration: Duration) => number;
}

/** @param scale makes all durations shorter by this factor, so a test need not wait for hours */
export function createDurations(scale = 1): Durations {
  const toMs = (duration: Duration) => {
    const unit = duration.slice(-1) as keyof typeof unitMs;
    return (Number(duration.slice(0, -1)) * unitMs[unit]) / scale;
  };
  return {
    text: (duration) => (scale === 1 ? duration : `${Math.max(1, Math.round(toMs(duration)))}ms`),
    seconds: (duration) => toMs(duration) / 1_000,
  };
}
