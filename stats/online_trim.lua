-- Removes those who were not seen within the window, the longest gone first, then those with a time too far ahead.
-- KEYS[1] the sorted set of who is on the site
-- ARGV[1] window, seconds   ARGV[2] how far a time may lie in the future, seconds   ARGV[3] how many at the most
-- returns how many were removed
local now, most = tonumber(redis.call('TIME')[1]), tonumber(ARGV[3])
local gone = redis.call('ZCOUNT', KEYS[1], '-inf', '(' .. (now - tonumber(ARGV[1])))
if gone > 0 then
  return redis.call('ZREMRANGEBYRANK', KEYS[1], 0, math.min(gone, most) - 1)
end
local ahead = redis.call('ZCOUNT', KEYS[1], '(' .. (now + tonumber(ARGV[2])), '+inf')
if ahead > 0 then
  return redis.call('ZREMRANGEBYRANK', KEYS[1], -math.min(ahead, most), -1)
end
return 0
