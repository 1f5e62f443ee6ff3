-- Records plays of one video: every viewer was seen now, by Redis's clock.
-- KEYS[1] the video's hash
-- ARGV[1] its TTL, seconds   ARGV[2] most viewers in it, 0 for any number   ARGV[3…] viewer ids, at most 2,000
-- returns {now in Unix seconds, viewers new to the hash, viewers in the hash, then the place among the ids, from 1, of
-- each viewer refused: one who is new when the hash holds as many as it may}
local now = redis.call('TIME')[1]
local most = tonumber(ARGV[2])
local room = most > 0 and most - redis.call('HLEN', KEYS[1])
local seen, refused = {}, {}
if not room or room >= #ARGV - 2 then -- whoever they are
  for i = 3, #ARGV do
    seen[#seen + 1] = ARGV[i]
    seen[#seen + 1] = now
  end
else
  local known = redis.call('HMGET', KEYS[1], unpack(ARGV, 3))
  local joined = {} -- new viewer -> whether there was room
  for i = 3, #ARGV do
    local viewer = ARGV[i]
    if not known[i - 2] and joined[viewer] == nil then
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
end
local added = 0
if #seen > 0 then
  added = redis.call('HSET', KEYS[1], unpack(seen))
  redis.call('EXPIRE', KEYS[1], ARGV[1])
end
return {tonumber(now), added, redis.call('HLEN', KEYS[1]), unpack(refused)}
