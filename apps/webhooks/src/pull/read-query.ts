import { invalidQuery, PullRefused } from "./pull-answers.ts";

export interface ChangesQuery {
  /** The id after which the answer begins. */
  after: number;
  /** How many changes the answer has at most. */
  limit: number;
  /** How long to wait for one. */
  waitMs: number;
}

const defaultLimit = 100;
const maxLimit = 1_000;
/** Shorter than the 60 s after which most proxies give up. */
const maxWaitSeconds = 30;

/**
 * Reads `after`, `limit` and `wait`. Other parameters are ignored.
 *
 * @throws PullRefused
 */
export function readQuery(parameters: URLSearchParams): ChangesQuery {
  return {
    after: readNumber(parameters, "after", { minimum: 0, maximum: Number.MAX_SAFE_INTEGER, absent: 0 }),
    limit: readNumber(parameters, "limit", { minimum: 1, maximum: maxLimit, absent: defaultLimit }),
    waitMs: readNumber(parameters, "wait", { minimum: 0, maximum: maxWaitSeconds, absent: 0 }) * 1_000,
  };
}

function readNumber(
  parameters: URLSearchParams,
  name: string,
  { minimum, maximum, absent }: { minimum: number; maximum: number; absent: number },
): number {
  const [text, ...others] = parameters.getAll(name);
  if (text === undefined) return absent;
  const number = Number(text);
  if (others.length > 0 || !/^\d{1,16}$/.test(text) || number < minimum || number > maximum)
    throw new PullRefused(invalidQuery(`${name} must be one whole number from ${minimum} to ${maximum}.`));
  return number;
}
