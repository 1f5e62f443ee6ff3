-- Adds to a video's plays, each write once, however often it is sent.
-- KEYS[1] the hash of the video's plays
-- ARGV[1] its TTL, seconds   ARGV[2] the writer's field   ARGV[3] the write's number, larger than those before
-- ARGV[4…] fields and what to add to each, in turns
-- returns 1 if it was added, 0 if it had been before
local done = tonumber(redis.call('HGET', KEYS[1], ARGV[2]) or 0)
if done >= tonumber(ARGV[3]) then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3]) -- first: whatever fails below is lost, not counted twice
for i = 4, #ARGV, 2 do
  redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return 1
