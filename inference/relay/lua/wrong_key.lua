-- ARGV: place, seconds
-- Counts a wrong key from a place. Returns how many there were, and for how many ms that counts.
local key = WRONG .. ARGV[1]
local number = redis.call('INCR', key)
if number == 1 then redis.call('EXPIRE', key, ARGV[2]) end
return {number, redis.call('PTTL', key)}
