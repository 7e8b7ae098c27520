-- How a job leaves a replica or the world: retired, ended from outside, stopped, or queued again.

local KILLED, CRASHED = 1, 2 -- how a replica ended; 0 is in good order
local MAX_STRIKES = { [KILLED] = 3, [CRASHED] = 2 }
local MAX_CRASHES = 4
local POISON_SECONDS = 3600

local function leave_replica(job, replica)
  if not replica or replica == '' then return end
  redis.call('SREM', RUNNING .. replica, job)
  redis.call('SREM', CANCELLED .. replica, job)
  if redis.call('GET', TRIAL .. replica) == job then redis.call('DEL', TRIAL .. replica) end
end

-- A job that has its last event: say what it used, keep it for readers that lag, forget where it ran.
local function retire(job, replica, gateway, abandoned, event)
  local usage = usage_of(job, event)
  note_usage(job, usage)
  settle_limits(job, usage)
  if abandoned then
    redis.call('DEL', JOB .. job, EVENTS .. job)
  else
    redis.call('HSET', JOB .. job, 'state', 'done')
    local is_durable = redis.call('HEXISTS', JOB .. job, 'durable') == 1
    redis.call('EXPIRE', JOB .. job, is_durable and DURABLE_RETENTION or RETENTION)
    redis.call('EXPIRE', EVENTS .. job, is_durable and DURABLE_RETENTION or RETENTION)
  end
  redis.call('SREM', FOLLOWED .. gateway, job)
  leave_replica(job, replica)
end

-- End a job from outside its replica: the attempt is raised first, so that no late writer follows.
local function end_job(job, event)
  local fields = redis.call('HMGET', JOB .. job, 'state', 'gateway', 'replica', 'deployment',
    'owner', 'priority', 'abandoned')
  local state = fields[1]
  if not state or state == 'done' or state == 'void' then return false end
  if state == 'waiting' then unqueue(fields[4], job, fields[6], fields[5]) end
  settle(job, 0)
  redis.call('HINCRBY', JOB .. job, 'attempt', 1)
  local seq = redis.call('XLEN', EVENTS .. job) + 1
  redis.call('XADD', EVENTS .. job, '0-' .. seq, 'e', event)
  publish(fields[2], { frame(job, seq, event) })
  retire(job, fields[3], fields[2], fields[7], event)
  return true
end

-- The jobs of an owner's kept run, or nil where nothing is kept of it. They come first in what is
-- kept, and are few; the rest may be megabytes.
local function jobs_of(owner, run)
  local beginning = redis.call('GETRANGE', KEPT .. owner .. ':' .. run, 0, 4095)
  local list = string.match(beginning, '^{"jobs":(%b[])')
  return list and cjson.decode(list)
end

local function goes_on(owner, run)
  for _, job in ipairs(jobs_of(owner, run) or {}) do
    local state = redis.call('HGET', JOB .. job, 'state')
    if state == 'waiting' or state == 'running' then return true end
  end
  return false
end

-- Stop a job, wherever it is. Returns gone, done, dropped (it waited) or asked (its replica will).
local function stop_job(job, abandoned)
  local fields = redis.call('HMGET', JOB .. job, 'state', 'replica')
  local state = fields[1]
  if not state or state == 'void' then
    release_hold(job) -- the first job of its request had taken it
    return 'gone'
  end
  if state == 'done' then
    if abandoned then redis.call('DEL', JOB .. job, EVENTS .. job) end
    return 'done'
  end
  if abandoned then redis.call('HSET', JOB .. job, 'abandoned', 1) end
  if state == 'waiting' then
    end_job(job, CANCELLED_EVENT)
    return 'dropped'
  end
  redis.call('SADD', CANCELLED .. fields[2], job)
  redis.call('PUBLISH', INBOX .. fields[2], job)
  return 'asked'
end

-- Count the end of a replica against a job that it ran. A suspect is one without a new token since
-- the last such end; only one suspect at a time is tried on a replica, so that the neighbours of
-- one that ends replicas are cleared by their next token. Returns whether it may be tried again.
local function strike(job, how)
  local strikes = redis.call('HINCRBY', JOB .. job, 'strikes', 1)
  local crashes = redis.call('HINCRBY', JOB .. job, 'crashes', how == CRASHED and 1 or 0)
  if strikes < MAX_STRIKES[how] and crashes < MAX_CRASHES then return true end
  local print = redis.call('HGET', JOB .. job, 'print')
  redis.call('SET', POISON .. print, job, 'EX', POISON_SECONDS)
  return false
end

-- Put a job that a replica took back to the front of its class; events so far stay, and whoever
-- takes it goes on after them. Returns 'queued', 'ended', or nil if the replica does not run it.
local function requeue(job, replica, how)
  local fields = redis.call('HMGET', JOB .. job, 'state', 'replica', 'deployment', 'priority',
    'deadline', 'arrived')
  if fields[1] ~= 'running' or fields[2] ~= replica then
    redis.call('SREM', RUNNING .. replica, job)
    return nil
  end
  local event
  if redis.call('SISMEMBER', CANCELLED .. replica, job) == 1 then
    event = CANCELLED_EVENT
  elseif tonumber(fields[5]) < now() then
    event = LATE_EVENT
  elseif how > 0 and not strike(job, how) then
    event = CRASHED_EVENT
  end
  if event then
    end_job(job, event)
    return 'ended'
  end
  redis.call('HINCRBY', JOB .. job, 'attempt', 1)
  redis.call('HSET', JOB .. job, 'state', 'waiting', 'replica', '')
  redis.call('HDEL', JOB .. job, 'home', 'hold', 'passed') -- whoever is free takes it
  leave_replica(job, replica)
  redis.call('ZADD', ARRIVED .. fields[3], fields[6], job)
  redis.call('ZADD', DEADLINES, fields[5], job)
  redis.call('SADD', BACKLOG, fields[3])
  place(fields[3], job, 0, tonumber(fields[4]))
  return 'queued'
end

-- Queue again what a replica ran, and forget it ran anything. Returns {queued ids, ended ids}.
local function reap_replica(replica, how)
  local queued, ended = {}, {}
  for _, job in ipairs(redis.call('SMEMBERS', RUNNING .. replica)) do
    local outcome = requeue(job, replica, how)
    if outcome == 'queued' then queued[#queued + 1] = job end
    if outcome == 'ended' then ended[#ended + 1] = job end
  end
  redis.call('DEL', RUNNING .. replica, AWAKE .. replica, CANCELLED .. replica, TRIAL .. replica,
    WARM .. replica, DUE .. replica)
  return { queued, ended }
end

