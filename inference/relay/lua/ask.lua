-- ARGV: deployment, request as JSON, most waiting questions
-- Returns ok, no_replica or full.
local key = TEXT .. ARGV[1]
if #ready_replicas(ARGV[1]) == 0 then return 'no_replica' end
if redis.call('LLEN', key) >= tonumber(ARGV[3]) then return 'full' end
redis.call('RPUSH', key, ARGV[2])
redis.call('EXPIRE', key, RETENTION)
note_use(ARGV[1])
return 'ok'
