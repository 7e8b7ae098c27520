-- ARGV: owner, name, fingerprint, holder, lease seconds, run ('' for none)
-- Claims the answer that an owner's idempotency key names, or claims it once more. Returns what
-- there is: {'yours'}, {'other'} for another request, {'claimed'}, {'told', run} or
-- {'kept', answer}. A run named here is known to be lost, and counts for nothing.
local key = ANSWER .. ARGV[1] .. ':' .. ARGV[2]
local found = redis.call('HMGET', key, 'fingerprint', 'holder', 'run', 'answer')
if found[1] and found[1] ~= ARGV[3] then return {'other'} end
if found[4] then return {'kept', found[4]} end
if found[3] and found[3] ~= ARGV[6] then return {'told', found[3]} end
if found[2] and found[2] ~= ARGV[4] and not found[3] then return {'claimed'} end
redis.call('HDEL', key, 'run')
redis.call('HSET', key, 'fingerprint', ARGV[3], 'holder', ARGV[4])
redis.call('EXPIRE', key, ARGV[5])
return {'yours'}
