-- ARGV: owner, conversation, run, time
-- Has an owner's conversation go on with a run, which is kept, unless its last one still goes on.
-- Returns ok or busy.
local key = CONVERSATION .. ARGV[1] .. ':' .. ARGV[2]
local last = redis.call('HGET', key, 'run')
if last and last ~= ARGV[3] and goes_on(ARGV[1], last) then return 'busy' end
redis.call('HSET', key, 'run', ARGV[3], 'started', ARGV[4])
redis.call('EXPIRE', key, math.max(1, redis.call('TTL', KEPT .. ARGV[1] .. ':' .. ARGV[3])))
return 'ok'
