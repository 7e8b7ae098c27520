-- Who is next: higher class of priority first; within a class owners share by tokens (start-time
-- fair queuing); an owner's jobs go by arrival; and each eighth turn goes to a lower class, but for
-- the lowest of all: what waits there runs when nothing else does.
--
-- A job's start is where its owner's use will stand when all its earlier jobs have had their cost,
-- but never before the class's virtual time at its arrival (its floor): nobody saves up. The owner
-- is charged when a job is taken, and settled when it is known what the job used.

local CLASS_WIDTH = 17592186044416 -- 2^44: room for 17 trillion tokens of virtual time per class
-- Where the lowest class begins: all others have smaller scores.
local IDLE_SCORE = exact(-IDLE_CLASS * CLASS_WIDTH)
local LOWER_TURN = 8
local PACE_WEIGHT = 0.1

local function class_of(score)
  return -math.floor(score / CLASS_WIDTH)
end

local function place(deployment, job, start, priority)
  redis.call('ZADD', WAITING .. deployment, exact(start - priority * CLASS_WIDTH), job)
end

local function line_of(deployment, priority, owner)
  return LINE .. deployment .. ':' .. priority .. ':' .. owner
end

local function use_tag(priority, owner)
  return 'u:' .. priority .. ':' .. owner
end

-- Give an owner's waiting jobs their places again, each after the cost of those before it.
local function place_line(deployment, priority, owner)
  local line = line_of(deployment, priority, owner)
  local use = tonumber(redis.call('HGET', FAIR .. deployment, use_tag(priority, owner)) or 0)
  for _, job in ipairs(redis.call('LRANGE', line, 0, -1)) do
    local fields = redis.call('HMGET', JOB .. job, 'floor', 'cost')
    if fields[1] then
      local start = math.max(tonumber(fields[1]), use)
      place(deployment, job, start, tonumber(priority))
      use = start + tonumber(fields[2])
    else
      redis.call('LREM', line, 1, job) -- its hash expired
    end
  end
end

-- It no longer waits for the replica that it was meant for.
local function leave_home(job)
  local home = redis.call('HGET', JOB .. job, 'home')
  if home then redis.call('ZREM', DUE .. home, job) end
end

local function forget_order_if_empty(deployment)
  if redis.call('EXISTS', WAITING .. deployment) == 1 then return end
  redis.call('DEL', FAIR .. deployment)
  redis.call('HDEL', PACE .. deployment, 'taken_at')
  redis.call('SREM', BACKLOG, deployment)
  redis.call('HDEL', UNREADY, deployment)
end

-- Put a new job at the end of its owner's line. Its hash has cost, owner and priority already.
local function enqueue(deployment, job, priority, owner, cost, time)
  local fair, line = FAIR .. deployment, line_of(deployment, priority, owner)
  redis.call('HSETNX', fair, 'epoch', exact(time))
  local floor = redis.call('HGET', fair, 'v:' .. priority) or '0'
  local use = tonumber(redis.call('HGET', fair, use_tag(priority, owner)) or 0)
  local last = redis.call('LINDEX', line, -1)
  local score = last and redis.call('ZSCORE', WAITING .. deployment, last)
  local last_cost = score and redis.call('HGET', JOB .. last, 'cost')
  if last_cost then use = tonumber(score) + priority * CLASS_WIDTH + tonumber(last_cost) end
  redis.call('HSET', JOB .. job, 'floor', floor, 'arrived', exact(time))
  redis.call('RPUSH', line, job)
  redis.call('ZADD', ARRIVED .. deployment, exact(time), job)
  place(deployment, job, math.max(tonumber(floor), use), priority)
end

-- Take a job out of the order without charging its owner.
local function unqueue(deployment, job, priority, owner)
  leave_home(job)
  redis.call('ZREM', ARRIVED .. deployment, job)
  redis.call('ZREM', DEADLINES, job)
  if redis.call('ZREM', WAITING .. deployment, job) == 1 then
    local line = line_of(deployment, priority, owner)
    local is_last = redis.call('LINDEX', line, -1) == job
    if redis.call('LREM', line, -1, job) == 1 and not is_last then
      place_line(deployment, priority, owner)
    end
  end
  forget_order_if_empty(deployment)
end

-- Take a job out of the order because a slot has it. One that had been taken before costs nothing.
local function charge(deployment, job, priority, owner, cost)
  local fair = FAIR .. deployment
  leave_home(job)
  if redis.call('HEXISTS', JOB .. job, 'charged') == 0 then
    local line = line_of(deployment, priority, owner)
    local is_first = redis.call('LINDEX', line, 0) == job
    local use = tonumber(redis.call('HGET', fair, use_tag(priority, owner)) or 0)
    local start = math.max(tonumber(redis.call('HGET', JOB .. job, 'floor')), use)
    if start > tonumber(redis.call('HGET', fair, 'v:' .. priority) or 0) then
      redis.call('HSET', fair, 'v:' .. priority, exact(start))
    end
    redis.call('HSET', fair, use_tag(priority, owner), exact(start + cost))
    redis.call('HSET', JOB .. job, 'charged', redis.call('HGET', fair, 'epoch'))
    redis.call('LREM', line, 1, job)
    -- One that was taken out of turn has the place of its owner's first, and the others pay for it.
    if not is_first then place_line(deployment, priority, owner) end
  end
  redis.call('ZREM', ARRIVED .. deployment, job)
  redis.call('ZREM', DEADLINES, job)
  redis.call('ZREM', WAITING .. deployment, job)
  forget_order_if_empty(deployment)
end

-- Let a job have cost what it used, and its owner's waiting jobs move up (or down) by the rest.
local function settle(job, used)
  local fields = redis.call('HMGET', JOB .. job, 'charged', 'deployment', 'owner', 'priority', 'cost')
  if not fields[1] then return end
  local fair = FAIR .. fields[2]
  local surplus = tonumber(fields[5]) - used
  -- Charges of an earlier backlog were forgotten with it.
  if surplus == 0 or redis.call('HGET', fair, 'epoch') ~= fields[1] then return end
  local tag = use_tag(fields[4], fields[3])
  redis.call('HSET', fair, tag, exact(tonumber(redis.call('HGET', fair, tag)) - surplus))
  place_line(fields[2], fields[4], fields[3])
end

local function oldest_below(deployment, class)
  local first = 0
  while true do
    local jobs = redis.call('ZRANGE', ARRIVED .. deployment, first, first + 63)
    if #jobs == 0 then return nil end
    for _, job in ipairs(jobs) do
      local score = redis.call('ZSCORE', WAITING .. deployment, job)
      local found = score and class_of(tonumber(score))
      if found and found < class and found > IDLE_CLASS then return job end
    end
    first = first + 64
  end
end

-- Whose turn it is: {job, its class, is it the turn of a lower class, do any wait}, or nil. While
-- jobs below the best class wait, and above the lowest of all, each eighth turn is the oldest one's
-- of them: one that came after n others of them has its turn within 8 (n + 1) takes, unless its class
-- becomes the best one before.
local function next_turn(deployment)
  local waiting = WAITING .. deployment
  local best = redis.call('ZRANGE', waiting, 0, 0, 'WITHSCORES')
  if not best[1] then return nil end
  local worst = redis.call('ZREVRANGEBYSCORE', waiting, '(' .. IDLE_SCORE, '-inf', 'WITHSCORES',
    'LIMIT', 0, 1)
  local class = class_of(tonumber(best[2]))
  local has_lower = worst[1] and class_of(tonumber(worst[2])) < class or false
  local turn = { job = best[1], class = class, has_lower = has_lower }
  local num_turns = tonumber(redis.call('HGET', FAIR .. deployment, 'turn') or 0)
  if turn.has_lower and num_turns + 1 >= LOWER_TURN then
    local lower = oldest_below(deployment, class)
    if lower then turn.job, turn.is_lower = lower, true end
  end
  return turn
end

-- Count a turn that was used, for the job that was taken.
local function end_turn(deployment, turn, job)
  if turn.is_lower and turn.job == job then
    redis.call('HSET', FAIR .. deployment, 'turn', 0)
  elseif turn.has_lower then
    redis.call('HINCRBY', FAIR .. deployment, 'turn', 1)
  end
end

-- Learn how fast waiting jobs are taken, from takes with no empty set between them.
local function note_take(deployment, time)
  local key = PACE .. deployment
  local fields = redis.call('HMGET', key, 'taken_at', 'interval')
  if fields[1] then
    local interval = math.max(0, time - tonumber(fields[1]))
    local mean = tonumber(fields[2] or interval)
    redis.call('HSET', key, 'interval', exact(mean + (interval - mean) * PACE_WEIGHT))
  end
  redis.call('HSET', key, 'taken_at', exact(time))
  redis.call('EXPIRE', key, RETENTION * 10)
end

-- Milliseconds until so many waiting jobs are taken, as far as known; else -1.
local function expected_wait(deployment, num_jobs, time)
  local fields = redis.call('HMGET', PACE .. deployment, 'interval', 'taken_at')
  if not fields[1] then return -1 end
  local since_last = fields[2] and time - tonumber(fields[2]) or 0
  return math.ceil(num_jobs * math.max(tonumber(fields[1]), since_last / 2) * 1000)
end

