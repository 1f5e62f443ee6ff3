-- Evicts viewers whose time is still the one that was read: whoever came back
-- since has another, and stays.
-- KEYS[1] the video's hash
-- ARGV[1…n] viewer ids, at most 1,000   ARGV[n+1…2n] their values as read, in the same order
-- returns how many were evicted if that is all of them, else {how many, viewers left in the hash}
local key, call = KEYS[1], redis.call
local n = #ARGV / 2
local stale, evicted = {}, 0
if n == 1 then -- as in most hashes: cheaper without a table of values
  if call('HGET', key, ARGV[1]) == ARGV[2] then
    stale[1] = ARGV[1]
  end
else
  local seen = call('HMGET', key, unpack(ARGV, 1, n))
  for i = 1, n do
    if seen[i] == ARGV[n + i] then
      stale[#stale + 1] = ARGV[i]
    end
  end
end
if #stale > 0 then
  evicted = call('HDEL', key, unpack(stale))
end
if evicted == n then
  return n
end
return {evicted, call('HLEN', key)}
