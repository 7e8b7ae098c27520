-- ARGV: replica, event, only if its lease is gone (0/1), forget it (0/1)
-- Ends every job of the replica. Returns their ids.
local replica = ARGV[1]
if ARGV[3] == '1' and redis.call('EXISTS', REPLICA .. replica) == 1 then return {} end
local deployment = redis.call('HGET', REPLICA .. replica, 'deployment')
if deployment then redis.call('ZREM', READY .. deployment, replica) end
if ARGV[4] == '1' then
  redis.call('DEL', REPLICA .. replica)
  redis.call('ZREM', REPLICAS, replica)
end
return reap_replica(replica, ARGV[2])
