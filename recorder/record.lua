-- Records plays of one video: every viewer was seen now, by Redis's clock.
-- KEYS[1] the video's hash
-- ARGV[1] its TTL, seconds   ARGV[2] most viewers in it, 0 for any number   ARGV[3] window, seconds, or 0 not to tell who
-- has just started   ARGV[4…] viewer ids, at most 2,000
-- returns {now in Unix seconds, viewers new to the hash, viewers in the hash, viewers who were not watching before, then
-- the place among the ids, from 1, of each viewer refused: one who is new when the hash holds as many as it may}
local now = redis.call('TIME')[1]
local most, window = tonumber(ARGV[2]), tonumber(ARGV[3])
local room = most > 0 and most - redis.call('HLEN', KEYS[1])
local crowded = room and room < #ARGV - 3 -- some may have to be refused
local known = (crowded or window > 0) and redis.call('HMGET', KEYS[1], unpack(ARGV, 4))
local seen, refused = {}, {}
if crowded then
  local joined = {} -- new viewer -> whether there was room
  for i = 4, #ARGV do
    local viewer = ARGV[i]
    if not known[i - 3] and joined[viewer] == nil then
      joined[viewer] = room > 0
      room = room - 1
    end
    if joined[viewer] == false then
      refused[#refused + 1] = i - 3
    else
      seen[#seen + 1] = viewer
      seen[#seen + 1] = now
    end
  end
else -- whoever they are
  for i = 4, #ARGV do
    seen[#seen + 1] = ARGV[i]
    seen[#seen + 1] = now
  end
end
local started = 0
if window > 0 then
  local oldest, newest = now - window, now + 120 -- beyond these, nobody is watching
  local counted, place = {}, 1
  for i = 1, #known do
    local at = known[i] and tonumber(known[i])
    if refused[place] == i then
      place = place + 1
    elseif not (at and at >= oldest and at <= newest) and not counted[ARGV[i + 3]] then
      counted[ARGV[i + 3]] = true
      started = started + 1
    end
  end
end
local added = 0
if #seen > 0 then
  added = redis.call('HSET', KEYS[1], unpack(seen))
  redis.call('EXPIRE', KEYS[1], ARGV[1])
end
return {tonumber(now), added, redis.call('HLEN', KEYS[1]), started, unpack(refused)}
