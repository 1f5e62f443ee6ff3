-- Looks through one page of a hash and evicts the stale viewers in it.
-- KEYS[1] the hash
-- ARGV[1] cursor   ARGV[2] viewers in a page, roughly   ARGV[3] window, seconds
-- returns {next cursor, viewers left in the hash}
local oldest = tonumber(redis.call('TIME')[1]) - tonumber(ARGV[3])
local page = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local fields, stale = page[2], {}
for i = 1, #fields, 2 do
  local at = tonumber(fields[i + 1])
  if not at or at < oldest then
    stale[#stale + 1] = fields[i]
  end
end
if #stale > 0 then
  redis.call('HDEL', KEYS[1], unpack(stale))
end
return {page[1], redis.call('HLEN', KEYS[1])}
