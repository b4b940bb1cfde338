/**
 * Defines `wakeWorkers(metaKey, markerKey)` in Lua, which wakes a worker that waits for events, unless an operator has
 * paused the queue. It does not look at BullMQ's global concurrency, which we do not use: then a worker is woken in vain.
 */
export const wakeWorkersInLua = `
local function wakeWorkers(metaKey, markerKey)
  if not redis.call('HMGET', metaKey, 'paused')[1] then redis.call('ZADD', markerKey, '0', '0') end
end
`;
