-- ARGV: replica, how it ended, only if its lease is gone (0/1), forget it (0/1)
-- Queues again every job of the replica. Returns {queued ids, ended ids}.
local replica = ARGV[1]
if ARGV[3] == '1' and redis.call('EXISTS', REPLICA .. replica) == 1 then return { {}, {} } end
local deployment = redis.call('HGET', REPLICA .. replica, 'deployment')
if deployment then
  redis.call('ZREM', READY .. deployment, replica)
  redis.call('ZREM', COMING .. deployment, replica)
end
if ARGV[4] == '1' then
  redis.call('DEL', REPLICA .. replica, TICKETS .. replica, BINDING .. replica,
    LASTING_BINDING .. replica)
  redis.call('ZREM', REPLICAS, replica)
end
return reap_replica(replica, tonumber(ARGV[2]))
