-- Counts who is on the site. It removes nobody, so it takes the same short time however many went.
-- KEYS[1] the sorted set of who is on the site
-- ARGV[1] window, seconds   ARGV[2] how far a time may lie in the future, seconds
-- returns {now in Unix seconds, how many were seen within the window}
local now = tonumber(redis.call('TIME')[1])
return {now, redis.call('ZCOUNT', KEYS[1], now - tonumber(ARGV[1]), now + tonumber(ARGV[2]))}
