-- ARGV: seconds to wait for a replica
-- Returns {lost replicas, queued jobs, ended jobs, {replica, tickets wanted, …}}.
local time = now()
local lost, queued, ended, tickets = {}, {}, {}, {}

local function note_all(list, ids)
  for _, id in ipairs(ids) do list[#list + 1] = id end
end

local function reap_lost_replicas()
  for _, replica in ipairs(redis.call('ZRANGEBYSCORE', REPLICAS, '-inf', time - LEASE)) do
    if redis.call('EXISTS', REPLICA .. replica) == 0 then
      lost[#lost + 1] = replica
      local outcome = reap_replica(replica, KILLED)
      note_all(queued, outcome[1])
      note_all(ended, outcome[2])
      redis.call('ZREM', REPLICAS, replica)
    end
  end
end

-- Nobody reads what a gateway followed that is gone.
local function stop_orphans()
  for _, gateway in ipairs(redis.call('ZRANGEBYSCORE', GATEWAYS, '-inf', time - GATEWAY_LEASE)) do
    for _, job in ipairs(redis.call('SMEMBERS', FOLLOWED .. gateway)) do
      if stop_job(job, true) == 'dropped' then ended[#ended + 1] = job end
    end
    redis.call('DEL', FOLLOWED .. gateway)
    redis.call('ZREM', GATEWAYS, gateway)
  end
end

local function end_unserved(deployment, event)
  for _, job in ipairs(redis.call('ZRANGE', WAITING .. deployment, 0, 499)) do
    if end_job(job, event) then
      ended[#ended + 1] = job
    else
      unqueue(deployment, job, 0, '')
    end
  end
end

-- So is one that was deleted: the controller tells of others, and not of it.
local function is_switched_off(deployment)
  local outlook = redis.call('HGET', OUTLOOK, deployment)
  if not outlook then return redis.call('EXISTS', OUTLOOK) == 1 end
  return string.find(outlook, '"prospect":"off"', 1, true) ~= nil
end

-- After a break (server paused, nobody swept) leases get time to be renewed before any is judged.
local marks = redis.call('HMGET', SWEEP, 'since', 'last')
local since = tonumber(marks[1] or time)
if not marks[2] or time - tonumber(marks[2]) > LEASE / 2 then since = time end
redis.call('HSET', SWEEP, 'since', string.format('%.6f', since), 'last', string.format('%.6f', time))
redis.call('EXPIRE', SWEEP, RETENTION)
if time - since >= LEASE then
  reap_lost_replicas()
  stop_orphans()
end

for _, job in ipairs(redis.call('ZRANGEBYSCORE', DEADLINES, '-inf', time, 'LIMIT', 0, 500)) do
  if end_job(job, LATE_EVENT) then ended[#ended + 1] = job end
  redis.call('ZREM', DEADLINES, job)
end

-- What holds something of a limit must have ended by now.
for _, job in ipairs(redis.call('ZRANGEBYSCORE', HOLDS, '-inf', time, 'LIMIT', 0, 500)) do
  if end_job(job, LATE_EVENT) then
    ended[#ended + 1] = job
  else
    release_hold(job)
  end
end

-- What gateways let in that had not heard of a limit is counted by the next request that meets it.
for _, key in ipairs(redis.call('ZRANGEBYSCORE', COUNTED_ANEW, '-inf', time)) do
  local revision = tonumber(redis.call('HGET', COUNTED, key) or 0)
  if revision > 0 then redis.call('HSET', COUNTED, key, exact(-revision)) end
  if redis.call('TYPE', key).ok == 'hash' then redis.call('HSET', key, 'run', UNKNOWN_RUN) end
  redis.call('ZREM', COUNTED_ANEW, key)
end

for _, deployment in ipairs(redis.call('SMEMBERS', BACKLOG)) do
  local replicas = ready_replicas(deployment)
  local unready_since = tonumber(redis.call('HGET', UNREADY, deployment) or time)
  if #replicas > 0 then
    redis.call('HDEL', UNREADY, deployment)
    local num_waiting = redis.call('ZCARD', WAITING .. deployment)
    for _, replica in ipairs(replicas) do
      tickets[#tickets + 1] = replica
      tickets[#tickets + 1] = math.min(num_waiting, sleeping_slots({ replica }))
    end
  elseif is_switched_off(deployment) then
    -- What a replica runs it ends by itself; what it could not end waits here, and for nothing.
    end_unserved(deployment, OFF_EVENT)
  elseif is_replica_coming(deployment) then
    -- Its jobs wait for it, each until its own deadline.
    redis.call('HDEL', UNREADY, deployment)
  elseif time - unready_since < tonumber(ARGV[1]) then
    redis.call('HSETNX', UNREADY, deployment, string.format('%.6f', time))
  else
    end_unserved(deployment, UNSERVED_EVENT)
  end
end
return { lost, queued, ended, tickets }
