-- Tells whether anybody holds the lease. Unlike obtaining it, this needs no memory.
-- KEYS[1] the lease
-- returns 1 or 0
return redis.call('EXISTS', KEYS[1])
