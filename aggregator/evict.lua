-- Evicts viewers that are still stale or implausible now, by Redis's clock:
-- whoever came back since the pass read the hash stays.
-- KEYS[1] the video's hash
-- ARGV[1] window, seconds   ARGV[2] how far a writer's clock may be ahead, seconds
-- ARGV[3…] viewer ids to look at, at most 2,000
-- returns {viewers evicted, how many of them had no plausible time, viewers left in the hash}
local now = tonumber(redis.call('TIME')[1])
local oldest, newest = now - ARGV[1], now + ARGV[2]
local seen = redis.call('HMGET', KEYS[1], unpack(ARGV, 3))
local out, invalid = {}, 0
for i = 1, #seen do
  local value = seen[i]
  if value then
    local at = string.match(value, '^%d+%.?%d*$') and tonumber(value)
    local plausible = at and at > 0 and at <= newest
    if not plausible then
      invalid = invalid + 1
    end
    if not plausible or at < oldest then
      out[#out + 1] = ARGV[i + 2]
    end
  end
end
local evicted = 0
if #out > 0 then
  evicted = redis.call('HDEL', KEYS[1], unpack(out))
end
return {evicted, invalid, redis.call('HLEN', KEYS[1])}
