-- Evicts viewers whose time is still the one that was read: whoever came back
-- since has another, and stays.
-- KEYS[1] the video's hash
-- ARGV[1…] viewer id, value as read, viewer id, value as read, …: at most 1,000 of each
-- returns how many were evicted if that is all of them, else {how many, viewers left in the hash}
local key, call = KEYS[1], redis.call
local n = #ARGV / 2
local evicted = 0
if n <= 4 then -- few, as in most hashes: cheaper without the tables below
  for i = 1, #ARGV, 2 do
    if call('HGET', key, ARGV[i]) == ARGV[i + 1] then
      evicted = evicted + call('HDEL', key, ARGV[i])
    end
  end
else
  local viewers, out = {}, {}
  for i = 1, n do
    viewers[i] = ARGV[2 * i - 1]
  end
  local seen = call('HMGET', key, unpack(viewers))
  for i = 1, n do
    if seen[i] == ARGV[2 * i] then
      out[#out + 1] = viewers[i]
    end
  end
  if #out > 0 then
    evicted = call('HDEL', key, unpack(out))
  end
end
if evicted == n then
  return n
end
return {evicted, call('HLEN', key)}
