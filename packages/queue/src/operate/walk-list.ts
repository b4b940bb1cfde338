import type { Redis } from "ioredis";
import { testSuffix } from "../events/event-subject.ts";
import type { List } from "../events/lists.ts";
import { queueKeys } from "../events/queue-name.ts";
import { defineScript, runScript } from "../redis/run-script.ts";

/** The place of an event in the queue, without the event. */
export interface QueuedPlace {
  id: string;
  /** In a sorted set; else "0". */
  score: string;
  /** Milliseconds since 1970. */
  queuedAt: number;
  /** Why its last attempt failed; null if none has, or without a code. */
  code: string | null;
}

export interface Walk {
  prefix: string;
  list: List;
  /** How the subject begins. Empty: any. */
  subjectStart: string;
  /** Only events of test partners, or else only the others. */
  isTest: boolean;
  /**
   * Events are added at the start of a list and leave at its end. From the newest on, a page may repeat events of the
   * page before, but leaves none out. From the oldest on, it may leave some out.
   */
  from: "newest" | "oldest";
  maxLooked: number;
}

/** Small enough that others wait for Redis about a millisecond. */
const pageSize = 1_000;

/**
 * Walks through one of the queue's lists. Redis has no index by subject, so this looks at each event.
 *
 * @yields how many events were looked at, and those with the subject, in the walk's order
 */
export async function* walkList(
  redis: Redis,
  { prefix, list, subjectStart, isTest, from, maxLooked }: Walk,
): AsyncGenerator<{ size: number; found: QueuedPlace[] }> {
  const queueKey = queueKeys(prefix);
  for (let looked = 0; looked < maxLooked; looked += pageSize) {
    const last = Math.min(looked + pageSize, maxLooked) - 1;
    const place = [list.isSorted ? 1 : 0, from === "newest" ? 1 : 0, looked, last];
    const args = [...place, queueKey(""), subjectStart, testSuffix, isTest ? 1 : 0];
    const [size, ...texts] = await runScript<[number, ...string[]]>(redis, pageScript, [queueKey(list.name)], args);
    const found: QueuedPlace[] = [];
    for (let at = 0; at < texts.length; at += 4) {
      const [id = "", score = "0", queuedAt, code = ""] = texts.slice(at, at + 4);
      found.push({ id, score, queuedAt: Number(queuedAt), code: code === "" ? null : code });
    }
    yield { size, found };
    if (size < last + 1 - looked) return;
  }
}

/**
 * KEYS: the list or sorted set.
 * ARGV: whether it is sorted (1), whether the newest is first (1), the first and the last place, the prefix of job keys,
 * the beginning of the subjects, the end of those of test partners, whether these are wanted (1).
 * Returns the size of the page, and then the id, the score, the time and the failure's code of each such event.
 */
const pageScript = defineScript(`
local isSorted, newestFirst = ARGV[1] == '1', ARGV[2] == '1'
local first, last = tonumber(ARGV[3]), tonumber(ARGV[4])
local page
if not isSorted and newestFirst then page = redis.call('LRANGE', KEYS[1], first, last)
elseif not isSorted then page = redis.call('LRANGE', KEYS[1], -last - 1, -first - 1)
elseif newestFirst then page = redis.call('ZRANGE', KEYS[1], first, last, 'REV', 'WITHSCORES')
else page = redis.call('ZRANGE', KEYS[1], first, last, 'WITHSCORES') end

-- Another program may have put anything in the place of a job.
local function read(job, field)
  local value = redis.pcall('HGET', job, field)
  return type(value) == 'string' and value or ''
end

local step = isSorted and 2 or 1
local found = { #page / step }
for index = 1, #page, step do
  -- The oldest of a list is its last.
  local place = (isSorted or newestFirst) and index or #page + 1 - index
  local job = ARGV[5] .. page[place]
  local subject = read(job, 'subject')
  local isTest = string.sub(subject, -#ARGV[7]) == ARGV[7]
  if string.sub(subject, 1, #ARGV[6]) == ARGV[6] and isTest == (ARGV[8] == '1') then
    found[#found + 1] = page[place]
    found[#found + 1] = isSorted and page[place + 1] or '0'
    found[#found + 1] = read(job, 'timestamp')
    found[#found + 1] = string.match(read(job, 'failedReason'), '^([%w_-]+):') or ''
  end
end
return found
`);
