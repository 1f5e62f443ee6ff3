-- Raises the largest counts of a video to what it has now.
-- KEYS[1] the hash of its peaks
-- ARGV[1] viewers   ARGV[2] now, Unix seconds   ARGV[3] today, yyyymmdd   ARGV[4] the hash's TTL, seconds
-- returns 1 if a peak has changed else 0
local viewers, now, day = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local old = redis.call('HMGET', KEYS[1], 'day', 'today', 'ever')
local fields = {}
local function raise(name)
  fields[#fields + 1] = name
  fields[#fields + 1] = ARGV[1]
  fields[#fields + 1] = name .. '_at'
  fields[#fields + 1] = now
end
if old[1] ~= day then
  raise('today')
  fields[#fields + 1] = 'day'
  fields[#fields + 1] = day
elseif viewers > (tonumber(old[2] or 0) or 0) then
  raise('today')
end
if viewers > (tonumber(old[3] or 0) or 0) then
  raise('ever')
end
if #fields > 0 then
  redis.call('HSET', KEYS[1], unpack(fields))
end
redis.call('EXPIRE', KEYS[1], ARGV[4])
return #fields > 0 and 1 or 0
