import { jobOptions } from "./job-options.ts";

/** A job's fields as they are in Redis. */
export type JobFields = ReadonlyMap<string, unknown>;

/** Set by the scripts that raise counts, when they came upon one that is no number, and had to set it right. */
export const damagedCountField = "damaged";

const numbers = ["timestamp", "delay", "priority", "atm", "attemptsMade", "ats", "stc", "processedOn", "finishedOn"];

/**
 * What keeps BullMQ from reading the job, or from handling it to its end, as a sentence without any value. Redis is a
 * boundary: a job may have been written, or changed, by something else than us. BullMQ throws on such a job each time
 * it is fetched, so that it would come back for ever.
 *
 * @returns null for a job as we write it
 */
export function findDamage(fields: JobFields): string | null {
  if (!fields.get("name")) return "The queued job has no name.";
  if (!isObjectOfJson(fields.get("opts"))) return "The queued job's opts are no JSON object.";
  for (const name of ["progress", "parent"])
    if (fields.has(name) && parseJson(fields.get(name)) === undefined) return `The queued job's ${name} is no JSON.`;
  const wrong = numbers.find((name) => fields.has(name) && !/^\d{1,15}$/.test(String(fields.get(name))));
  if (wrong !== undefined) return `The queued job's ${wrong} is no number.`;
  return fields.has(damagedCountField) ? `The queued job's ${fields.get(damagedCountField)} was no number.` : null;
}

/** The job's id was in a list, and there is no job: all that is there was written by the scripts that fetch. */
export function isGone(fields: JobFields): boolean {
  return ["name", "data", "opts", "timestamp"].every((name) => !fields.has(name));
}

/** Of nearly all jobs, so that these need not be parsed once more. */
const usualOptions = JSON.stringify(jobOptions);

function isObjectOfJson(text: unknown): boolean {
  if (text === usualOptions) return true;
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
