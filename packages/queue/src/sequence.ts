/**
 * How far ahead of the last number the durable bound is set, in microseconds. It is what numbers may jump ahead of the
 * clock by when Redis was restarted, and how often a number costs a write to disk.
 */
const boundAheadUs = 2_000_000;

/**
 * Defines `reserveSequence(boundKey, lastKey, clock, count)` in Lua: reserves consecutive sequence numbers and returns
 * the first. They are the order of receipt across all ingest processes: microseconds of Redis' clock, always larger than
 * the last.
 *
 * `max(clock, last + 1)` keeps it rising when the clock is set back, and when Redis has lost its data the clock alone
 * puts new events behind all old ones, which a counter would not. It stays below 2^53 until the year 2255, so it is
 * exact as a JavaScript number and as a Lua number.
 *
 * The bound is on disk, and no number above it was ever given out. The last number is in memory only (REPL_NONE), so
 * that numbers alone cost no fsync. It begins with the id of the server's run (INFO). Another run's last number may be
 * older than what that run gave out, so numbers go on after the bound then.
 */
export const reserveSequenceInLua = `
local function reserveSequence(boundKey, lastKey, clock, count)
  local bound = tonumber(redis.call('GET', boundKey) or '0')
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
  local lastRun, last = string.match(redis.call('GET', lastKey) or '', '^(%w+):(%d+)$')
  last = lastRun == run and tonumber(last) or bound
  local first = math.max(clock, last + 1)
  local newLast = first + count - 1
  if newLast > bound then
    redis.call('SET', boundKey, string.format('%.0f', newLast + ${boundAheadUs}))
  end
  redis.set_repl(redis.REPL_NONE)
  redis.call('SET', lastKey, run .. ':' .. string.format('%.0f', newLast))
  redis.set_repl(redis.REPL_ALL)
  return first
end
`;
