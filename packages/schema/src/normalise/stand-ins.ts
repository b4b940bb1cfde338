export interface ReadDate {
  day: string;
  moment: string | null;
}

export function readDate(sent: string): ReadDate | undefined {
  const [, day, time] = /^(\d{4}-\d\d-\d\d)(T.*)?$/.exec(sent) ?? [];
  if (day === undefined) return undefined;
  const moment = time === undefined || Number.isNaN(Date.parse(sent)) ? null : new Date(sent).toISOString();
  return { day, moment };
}

export function readEmail(sent: string): string | undefined {
  const address = sent.trim().toLowerCase();
  return /^[^@\s]+@[^@\s]+$/.test(address) ? address : undefined;
}
