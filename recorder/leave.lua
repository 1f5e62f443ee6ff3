-- Removes one viewer, unless somebody has seen the viewer since.
-- KEYS[1] the video's hash
-- ARGV[1] viewer id   ARGV[2] recorded_at of the play that ends, Unix seconds; 0 removes whatever is stored
-- returns {1 if the viewer was removed else 0, viewers left in the hash}
local seen = redis.call('HGET', KEYS[1], ARGV[1])
local recorded_at = tonumber(ARGV[2])
local at = seen and string.match(seen, '^%d+%.?%d*$') and tonumber(seen)
local newer = recorded_at > 0 and at and at > recorded_at
local removed = 0
if seen and not newer then
  removed = redis.call('HDEL', KEYS[1], ARGV[1])
end
return {removed, redis.call('HLEN', KEYS[1])}
