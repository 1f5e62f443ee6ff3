-- Notes that viewers are on the site now, by Redis's clock.
-- KEYS[1] the sorted set of who is on the site
-- ARGV[1] its TTL, seconds   ARGV[2…] viewer ids, at most 2,000
-- returns {now in Unix seconds}
local now = redis.call('TIME')[1]
local seen = {}
for i = 2, #ARGV do
  seen[#seen + 1] = now
  seen[#seen + 1] = ARGV[i]
end
redis.call('ZADD', KEYS[1], unpack(seen))
redis.call('EXPIRE', KEYS[1], ARGV[1])
return {tonumber(now)}
