-- Records plays of one video: every viewer was seen now, by Redis's clock.
-- KEYS[1] the video's hash
-- ARGV[1] its TTL, seconds   ARGV[2] most viewers in it, 0 for any number   ARGV[3…] viewer ids, at most 2,000
-- returns {now in Unix seconds, viewers new to the hash, viewers in the hash, then the place among the ids, from 1, of
-- each viewer refused: one who is new when the hash holds as many as it may}
local now = redis.call('TIME')[1]
local most = tonumber(ARGV[2])
local room = most > 0 and most - redis.call('HLEN', KEYS[1])
local known = room and room < #ARGV - 2 and redis.call('HMGET', KEYS[1], unpack(ARGV, 3))
local seen, refused, joined = {}, {}, {}
for i = 3, #ARGV do
  local viewer = ARGV[i]
  if known and not known[i - 2] and not joined[viewer] then
    joined[viewer] = room > 0
    room = room - 1
  end
  if joined[viewer] == false then
    refused[#refused + 1] = i - 2
  else
    seen[#seen + 1] = viewer
    seen[#seen + 1] = now
  end
end
local added = 0
if #seen > 0 then
  added = redis.call('HSET', KEYS[1], unpack(seen))
  redis.call('EXPIRE', KEYS[1], ARGV[1])
end
return {tonumber(now), added, redis.call('HLEN', KEYS[1]), unpack(refused)}
