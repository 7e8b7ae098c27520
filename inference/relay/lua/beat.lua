-- ARGV: replica, deployment, status as JSON, phase (ready, coming, lost or neither), slots, seconds
--   per token of a prompt, node
-- Renews the lease. A replica that says it failed or stopped loses its jobs to others.
local replica, deployment, phase, time = ARGV[1], ARGV[2], ARGV[4], now()
redis.call('HSET', REPLICA .. replica, 'status', ARGV[3], 'deployment', deployment,
  'slots', ARGV[5], 'pace', ARGV[6], 'node', ARGV[7])
-- Nobody waits for jobs of one that loads, which may leave little time for its heartbeat.
redis.call('EXPIRE', REPLICA .. replica, phase == 'coming' and LOADING_LEASE or LEASE)
redis.call('ZADD', REPLICAS, time, replica)
for name, key in pairs({ ready = READY .. deployment, coming = COMING .. deployment }) do
  if phase == name then
    redis.call('ZADD', key, time, replica)
    redis.call('EXPIRE', key, RETENTION)
  else
    redis.call('ZREM', key, replica)
  end
end
if phase == 'lost' then
  reap_replica(replica, 0)
else
  -- A slot that never came back for more work counts as asleep again: a spare ticket costs little.
  redis.call('SINTERSTORE', AWAKE .. replica, AWAKE .. replica, RUNNING .. replica)
  redis.call('ZREMRANGEBYSCORE', DUE .. replica, '-inf', time)
end
