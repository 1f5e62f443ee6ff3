-- Replaces the list of the largest videos.
-- KEYS[1] the sorted set of them
-- ARGV[1] its TTL, seconds   ARGV[2…] viewers and video id, in turns; none empties it
-- returns how many there are
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1) -- and no DEL, which would take a key of any type
for i = 2, #ARGV, 4000 do
  redis.call('ZADD', KEYS[1], unpack(ARGV, i, math.min(i + 3999, #ARGV)))
end
if #ARGV > 1 then
  redis.call('EXPIRE', KEYS[1], ARGV[1])
end
return (#ARGV - 1) / 2
