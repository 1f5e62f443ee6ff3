-- Adds a count to a history, unless there is a later one, and drops what is too old.
-- KEYS[1] the stream
-- ARGV[1] when it was counted, Unix milliseconds   ARGV[2] viewers   ARGV[3] for how long counts are kept, seconds
-- returns 1 if it was added else 0
local at, kept = ARGV[1], tonumber(ARGV[3])
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if last and tonumber(string.match(last[1], '^%d+')) >= tonumber(at) then
  return 0 -- this very call, sent again, or a clock that was set back
end
redis.call('XADD', KEYS[1], 'MINID', string.format('%.0f', tonumber(at) - kept * 1000), at, 'viewers', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
