-- Takes a viewer from the site, unless somebody has seen the viewer since.
-- KEYS[1] the sorted set of who is on the site
-- ARGV[1] viewer id   ARGV[2] when the viewer who leaves was seen, Unix seconds; 0 removes in any case
-- returns {1 if the viewer was removed else 0}
local at = redis.call('ZSCORE', KEYS[1], ARGV[1])
local recorded_at = tonumber(ARGV[2])
if at and (recorded_at == 0 or tonumber(at) <= recorded_at) then
  return {redis.call('ZREM', KEYS[1], ARGV[1])}
end
return {0}
