-- ARGV: event for lost replicas, for deadlines, for no replica, seconds to wait for a replica
-- Returns {lost replicas, failed jobs, {deployment, tickets wanted, …}}.
local time = now()
local lost, failed, tickets = {}, {}, {}

-- After a break (server paused, nobody swept) leases get time to be renewed before any is judged.
local marks = redis.call('HMGET', SWEEP, 'since', 'last')
local since = tonumber(marks[1] or time)
if not marks[2] or time - tonumber(marks[2]) > LEASE / 2 then since = time end
redis.call('HSET', SWEEP, 'since', string.format('%.6f', since), 'last', string.format('%.6f', time))
redis.call('EXPIRE', SWEEP, RETENTION)

if time - since >= LEASE then
  for _, replica in ipairs(redis.call('ZRANGEBYSCORE', REPLICAS, '-inf', time - LEASE)) do
    if redis.call('EXISTS', REPLICA .. replica) == 0 then
      lost[#lost + 1] = replica
      for _, job in ipairs(reap_replica(replica, ARGV[1])) do failed[#failed + 1] = job end
      redis.call('ZREM', REPLICAS, replica)
    end
  end
end

for _, job in ipairs(redis.call('ZRANGEBYSCORE', DEADLINES, '-inf', time, 'LIMIT', 0, 500)) do
  if end_job(job, ARGV[2]) then failed[#failed + 1] = job end
  redis.call('ZREM', DEADLINES, job)
end

for _, deployment in ipairs(redis.call('SMEMBERS', BACKLOG)) do
  local replicas = ready_replicas(deployment)
  local unready_since = tonumber(redis.call('HGET', UNREADY, deployment) or time)
  if #replicas > 0 then
    redis.call('HDEL', UNREADY, deployment)
    local num_waiting = redis.call('ZCARD', WAITING .. deployment)
    tickets[#tickets + 1] = deployment
    tickets[#tickets + 1] = math.min(num_waiting, sleeping_slots(replicas))
  elseif time - unready_since < tonumber(ARGV[4]) then
    redis.call('HSETNX', UNREADY, deployment, string.format('%.6f', time))
  else
    for _, job in ipairs(redis.call('ZRANGE', WAITING .. deployment, 0, 499)) do
      if end_job(job, ARGV[3]) then
        failed[#failed + 1] = job
      else
        unqueue(job, deployment, '', 0, 0)
      end
    end
  end
end
return { lost, failed, tickets }
