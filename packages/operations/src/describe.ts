const unitsMs = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

/** For example: 3 min */
export function describeAge(ms: number): string {
  for (const [unit, unitMs] of unitsMs) if (ms >= 2 * unitMs) return `${Math.floor(ms / unitMs)} ${unit}`;
  return `${Math.max(0, Math.floor(ms / 1_000))} s`;
}

const units = ["B", "kB", "MB", "GB", "TB"];

/** For example: 12 MB */
export function describeBytes(bytes: number): string {
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log(Math.max(1, bytes)) / Math.log(1_024))));
  return `${Math.round(bytes / 1_024 ** power)} ${units[power]}`;
}

/** For example: 3 partners */
export function describeCount(count: number, thing: string): string {
  return `${count.toLocaleString("en")} ${thing}${count === 1 ? "" : "s"}`;
}

/** Formats a time in UTC, without milliseconds. */
export function toSeconds(time: Date): string {
  return time.toISOString().replace(/\.\d{3}Z$/, "Z");
}

/** In the units in which quotas are set: 1 kB is 1,000 bytes. */
export function describeQuota(bytes: number): string {
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${Number((bytes / 1_000 ** power).toPrecision(3))} ${units[power]}`;
}
