-- Time, replicas and messages, for every script. Reads nothing until a function is called.

local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) + tonumber(time[2]) / 1000000
end

-- A number as text from which the same number is read again. Whole ones are digits alone: what
-- counts takes neither an exponent nor -0.
local function exact(number)
  if number == math.floor(number) and math.abs(number) < 2 ^ 63 then
    return string.format('%.0f', number == 0 and 0 or number)
  end
  return string.format('%.17g', number)
end

-- Replicas of a deployment whose last beat said ready and whose lease still runs.
local function ready_replicas(deployment)
  local key = READY .. deployment
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now() - LEASE)
  return redis.call('ZRANGE', key, 0, -1)
end

-- Whether a replica of the deployment starts, loads or waits to be started again.
local function is_replica_coming(deployment)
  return redis.call('ZCOUNT', COMING .. deployment, now() - LEASE, '+inf') > 0
end

-- Note that somebody wants the deployment now, so that it stays, or comes.
local function note_use(deployment)
  redis.call('ZADD', USED, now(), deployment)
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

-- Tell frames to a job's gateways, whose names stand in one text.
local function publish(gateways, frames)
  local message = '[' .. table.concat(frames, ',') .. ']'
  for gateway in string.gmatch(gateways, '%S+') do
    redis.call('PUBLISH', GATEWAY .. gateway, message)
  end
end

