-- Notes who was seen in an hour.
-- KEYS[1] the hour's HyperLogLog
-- ARGV[1] its TTL, seconds   ARGV[2…] viewer ids, at most 2,000
-- returns 1 if the estimate has changed else 0
local changed = redis.call('PFADD', KEYS[1], unpack(ARGV, 2))
redis.call('EXPIRE', KEYS[1], ARGV[1])
return changed
