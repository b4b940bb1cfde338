import { jobOptionsText } from "./job-options.ts";

export type JobFields = ReadonlyMap<string, unknown>;

/** Set by the scripts that increment counts when they had to reset one that was not a number. */
export const damagedCountField = "damaged";

const numbers = ["timestamp", "delay", "priority", "atm", "attemptsMade", "ats", "stc", "processedOn", "finishedOn"];

/**
 * Describes what prevents BullMQ from reading or finishing the job, in a sentence without any values. Redis is a
 * boundary: another program may have written or changed the job. BullMQ throws each time it fetches such a job, so it
 * would be retried forever.
 *
 * @returns null for an undamaged job
 */
export function findDamage(fields: JobFields): string | null {
  if (!fields.get("name")) return "The queued job has no name.";
  if (!isObjectOfJson(fields.get("opts"))) return "The queued job's opts are not a JSON object.";
  for (const name of ["progress", "parent"])
    if (fields.has(name) && parseJson(fields.get(name)) === undefined) return `The queued job's ${name} is not JSON.`;
  const wrong = numbers.find((name) => fields.has(name) && !/^\d{1,15}$/.test(String(fields.get(name))));
  if (wrong !== undefined) return `The queued job's ${wrong} is not a number.`;
  return fields.has(damagedCountField) ? `The queued job's ${fields.get(damagedCountField)} was not a number.` : null;
}

/**
 * Returns whether a job is missing although its id is in a list. Its only fields were written by the scripts that fetch
 * jobs.
 */
export function isMissing(fields: JobFields): boolean {
  return ["name", "data", "opts", "timestamp"].every((name) => !fields.has(name));
}

function isObjectOfJson(text: unknown): boolean {
  // Nearly all jobs have these options, which then need not be parsed.
  if (text === jobOptionsText) return true;
  const value = parseJson(text);
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parseJson(text: unknown): unknown {
  try {
    return JSON.parse(String(text));
  } catch {
    return undefined;
  }
}
