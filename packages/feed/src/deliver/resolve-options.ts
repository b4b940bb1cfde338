import { defaultRetryPolicy } from "./back-off.ts";
import type { BatchConsumer, ConsumerOptions, DeliveryFilter, SingleConsumer } from "./consumer-options.ts";

const defaultTimeoutMs = 60_000;
const defaultConcurrency = 8;
const maxConcurrency = 1_000;
const defaultBatchSize = 100;
const maxBatchSize = 1_000;

/** @throws TypeError */
export function resolveOptions(options: ConsumerOptions): SingleConsumer | BatchConsumer {
  const { name, mode = "latest", from = "beginning", filter = {}, timeoutMs = defaultTimeoutMs } = options;
  if (!/^[\w.-]{1,100}$/.test(name)) throw new TypeError("name must be 1 to 100 letters, digits, dots, - and _.");
  if (typeof from === "object" && !isWhole(from.after, 0, Number.MAX_SAFE_INTEGER))
    throw new TypeError("from.after must be the id of a change, or 0.");
  requireWhole("timeoutMs", timeoutMs, 2 ** 31 - 1);
  checkFilter(filter);
  const common = { name, mode, from, filter, timeoutMs };
  if ("handleBatch" in options) {
    const { handleBatch, batchSize = defaultBatchSize } = options;
    requireWhole("batchSize", batchSize, maxBatchSize);
    return { ...common, handleBatch, batchSize };
  }
  const { handle, concurrency = defaultConcurrency, retry } = options;
  requireWhole("concurrency", concurrency, maxConcurrency);
  return { ...common, handle, concurrency, retry: { ...defaultRetryPolicy, ...retry } };
}

function requireWhole(name: string, value: number, most: number): void {
  if (!isWhole(value, 1, most)) throw new TypeError(`${name} must be a whole number from 1 to ${most}.`);
}

function isWhole(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most;
}

function checkFilter({ partners, changes, countries, arrival }: DeliveryFilter): void {
  if ([partners, changes, countries].some((list) => list?.length === 0))
    throw new TypeError("A list of the filter must not be empty: leave it out.");
  if (countries?.some((code) => !/^[A-Z]{2}$/.test(code)))
    throw new TypeError("filter.countries must be ISO 3166-1 alpha-2 codes, such as ES.");
  if (arrival !== undefined && !(arrival.fromDays <= arrival.toDays))
    throw new TypeError("filter.arrival must not end before it begins.");
}
