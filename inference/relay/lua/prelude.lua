-- What several scripts need. Reads nothing until a function is called.

local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) + tonumber(time[2]) / 1000000
end

-- Replicas of a deployment whose last beat said ready and whose lease still runs.
local function ready_replicas(deployment)
  local key = READY .. deployment
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now() - LEASE)
  return redis.call('ZRANGE', key, 0, -1)
end

-- Slots that run nothing and will not look for work unless a ticket wakes them.
local function sleeping_slots(replicas)
  local num_sleeping = 0
  for _, replica in ipairs(replicas) do
    local num_slots = tonumber(redis.call('HGET', REPLICA .. replica, 'slots') or 0)
    num_sleeping = num_sleeping + math.max(0, num_slots - redis.call('SCARD', AWAKE .. replica))
  end
  return num_sleeping
end

-- One frame on a gateway's channel: [[job, seq, event], …]; events are JSON already.
local function frame(job, seq, event)
  return '["' .. job .. '",' .. seq .. ',' .. event .. ']'
end

local function publish(gateway, frames)
  redis.call('PUBLISH', GATEWAY .. gateway, '[' .. table.concat(frames, ',') .. ']')
end

-- Take a job out of its waiting set and give its owner back the share it did not use.
local function unqueue(job, deployment, owner, priority, cost)
  if redis.call('ZREM', WAITING .. deployment, job) == 0 then return end
  redis.call('ZREM', DEADLINES, job)
  if redis.call('EXISTS', WAITING .. deployment) == 0 then
    redis.call('DEL', FAIR .. deployment)
    redis.call('SREM', BACKLOG, deployment)
    redis.call('HDEL', UNREADY, deployment)
    return
  end
  if cost == 0 then return end
  local tag = 'f:' .. priority .. ':' .. owner
  local finish = tonumber(redis.call('HGET', FAIR .. deployment, tag) or 0)
  redis.call('HSET', FAIR .. deployment, tag, string.format('%.17g', math.max(0, finish - cost)))
end

-- A job that has its last event: keep it for readers that lag, forget where it ran.
local function retire(job, replica, abandoned)
  if abandoned then
    redis.call('DEL', JOB .. job, EVENTS .. job)
  else
    redis.call('HSET', JOB .. job, 'state', 'done')
    redis.call('EXPIRE', JOB .. job, RETENTION)
    redis.call('EXPIRE', EVENTS .. job, RETENTION)
  end
  if replica and replica ~= '' then
    redis.call('SREM', RUNNING .. replica, job)
    redis.call('SREM', CANCELLED .. replica, job)
  end
end

-- End a job from outside its replica: the attempt is raised first, so that no late writer follows.
local function end_job(job, event)
  local fields = redis.call('HMGET', JOB .. job, 'state', 'gateway', 'replica', 'deployment',
    'owner', 'priority', 'cost', 'abandoned')
  local state = fields[1]
  if not state or state == 'done' or state == 'void' then return false end
  if state == 'waiting' then
    unqueue(job, fields[4], fields[5], fields[6], tonumber(fields[7]))
  end
  redis.call('HINCRBY', JOB .. job, 'attempt', 1)
  local seq = redis.call('XLEN', EVENTS .. job) + 1
  redis.call('XADD', EVENTS .. job, '0-' .. seq, 'e', event)
  publish(fields[2], { frame(job, seq, event) })
  retire(job, fields[3], fields[8])
  return true
end

-- End every job of a replica and forget the replica's lease.
local function reap_replica(replica, event)
  local failed = {}
  for _, job in ipairs(redis.call('SMEMBERS', RUNNING .. replica)) do
    if end_job(job, event) then failed[#failed + 1] = job end
  end
  redis.call('DEL', RUNNING .. replica, AWAKE .. replica, CANCELLED .. replica)
  return failed
end

