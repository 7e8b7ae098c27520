-- ARGV: job, owner, gateway
-- Has a durable job's events told to the gateway from now on. Returns its payload, or nothing where
-- the owner has no such job: an unknown id and somebody else's look alike.
local fields = redis.call('HMGET', JOB .. ARGV[1], 'owner', 'durable', 'payload')
if fields[1] ~= ARGV[2] or not fields[2] then return false end
redis.call('HSET', JOB .. ARGV[1], 'gateway', ARGV[3])
return fields[3]
