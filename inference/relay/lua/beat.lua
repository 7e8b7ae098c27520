-- ARGV: replica, deployment, status as JSON, is ready (0/1), is lost (0/1), slots, event
-- Renews the lease. A replica that says it failed or stopped loses its jobs. Returns their ids.
local replica, deployment, time = ARGV[1], ARGV[2], now()
redis.call('HSET', REPLICA .. replica, 'status', ARGV[3], 'deployment', deployment, 'slots', ARGV[6])
redis.call('EXPIRE', REPLICA .. replica, LEASE)
redis.call('ZADD', REPLICAS, time, replica)
if ARGV[4] == '1' then
  redis.call('ZADD', READY .. deployment, time, replica)
  redis.call('EXPIRE', READY .. deployment, RETENTION)
else
  redis.call('ZREM', READY .. deployment, replica)
end
if ARGV[5] == '1' then return reap_replica(replica, ARGV[7]) end
-- A slot that never came back for more work counts as asleep again: a spare ticket costs little.
redis.call('SINTERSTORE', AWAKE .. replica, AWAKE .. replica, RUNNING .. replica)
return {}
