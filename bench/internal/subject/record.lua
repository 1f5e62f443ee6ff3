-- Records plays of one video: every viewer was seen now, by Redis's clock.
-- KEYS[1] the video's hash
-- ARGV[1] its TTL, seconds   ARGV[2…] viewer ids, at most 2,000
-- returns {now in Unix seconds, viewers new to the hash, viewers in the hash}
local now = redis.call('TIME')[1]
local seen = {}
for i = 2, #ARGV do
  seen[#seen + 1] = ARGV[i]
  seen[#seen + 1] = now
end
local added = redis.call('HSET', KEYS[1], unpack(seen))
redis.call('EXPIRE', KEYS[1], ARGV[1])
return {tonumber(now), added, redis.call('HLEN', KEYS[1])}
