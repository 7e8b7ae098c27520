-- What limits count, each counter by itself: use of the last minute, what is spent of a budget, and
-- what is open or queued now.
--
-- Time is the server's own, and never goes back: where its clock does, counters go on from where
-- they were. A minute is the last 60 seconds and the part of one in which they began, so that no 60
-- seconds ever see more than the limit.

local MINUTE_SECONDS = 61
local SERVER_CHECK_SECONDS = 1

-- Seconds that only grow, as fast as the server's clock does while that goes forward.
local function steady_time(time)
  local known = redis.call('HMGET', CLOCK, 'at', 'lag')
  local lag = tonumber(known[2] or 0)
  if known[1] and time < tonumber(known[1]) then lag = lag + tonumber(known[1]) - time end
  redis.call('HSET', CLOCK, 'at', exact(time), 'lag', exact(lag))
  return time + lag
end

-- Which run of the server this is. What another one has left behind may be old.
local function server_run(time)
  local known = redis.call('HMGET', CLOCK, 'run', 'run_at')
  if known[1] and math.abs(time - tonumber(known[2])) < SERVER_CHECK_SECONDS then return known[1] end
  local info = redis.pcall('INFO', 'server')
  local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or 'unknown'
  redis.call('HSET', CLOCK, 'run', run, 'run_at', exact(time))
  return run
end

-- A minute is a hash: amounts by second, their sum, and the first and the last of these seconds.
local minute = {}

function minute.used(key, second)
  local fields = redis.call('HMGET', key, 'sum', 'first', 'last')
  if not fields[1] then return 0 end
  local sum, first, last = tonumber(fields[1]), tonumber(fields[2]), tonumber(fields[3])
  local past = second - MINUTE_SECONDS
  if last <= past then
    redis.call('DEL', key)
    return 0
  end
  if first <= past then
    for old = first, past do
      sum = sum - tonumber(redis.call('HGET', key, old) or 0)
      redis.call('HDEL', key, old)
    end
    redis.call('HSET', key, 'sum', sum, 'first', past + 1)
  end
  return sum
end

function minute.take(key, second, amount)
  redis.call('HINCRBY', key, second, amount)
  redis.call('HINCRBY', key, 'sum', amount)
  redis.call('HSETNX', key, 'first', second)
  redis.call('HSET', key, 'last', second)
  redis.call('EXPIRE', key, 2 * MINUTE_SECONDS)
end

-- Give back to the second it was taken in, unless that is over.
function minute.give_back(key, second, amount)
  if redis.call('HEXISTS', key, second) == 0 then return end
  redis.call('HINCRBY', key, second, -amount)
  redis.call('HINCRBY', key, 'sum', -amount)
end

-- Seconds until so much of it is over.
function minute.wait(key, time, amount)
  local fields = redis.call('HMGET', key, 'first', 'last')
  local first, last = tonumber(fields[1]), tonumber(fields[2])
  if not first then return MINUTE_SECONDS end -- more than it ever allows
  for second = first, last do
    amount = amount - tonumber(redis.call('HGET', key, second) or 0)
    if amount <= 0 then return second + MINUTE_SECONDS - time end
  end
  return last + MINUTE_SECONDS - time
end

-- Seconds until all of it is over.
function minute.reset(key, time)
  local last = redis.call('HGET', key, 'last')
  return last and tonumber(last) + MINUTE_SECONDS - time or 0
end

-- A budget is a hash: since when it counts, the run of the server and the revision of the limit
-- that it counts for, what is used, and what jobs hold that have not ended. Used is nil where only
-- the ledger knows it.
local budget = {}

function budget.begin(key, counter, run, used)
  redis.call('HSET', key, 'from', counter.from, 'run', run, 'revision', counter.revision,
    'used', used, 'held', 0)
  redis.call('EXPIREAT', key, counter.to + BUDGET_RETENTION)
end

function budget.read(key, counter, run)
  local fields = redis.call('HMGET', key, 'from', 'run', 'revision', 'used', 'held')
  if not fields[1] then return nil, 0, '' end
  local from, used, held = tonumber(fields[1]), tonumber(fields[4]), tonumber(fields[5])
  if fields[2] ~= run or tonumber(fields[3]) < counter.revision then return nil, held, fields[4] end
  if from < counter.from then
    budget.begin(key, counter, run, 0)
    return 0, 0, '0'
  end
  return used, held, fields[4]
end

-- Set what the ledger says is used; not where that has changed since somebody asked it.
function budget.restore(key, counter, run, known, used)
  local fields = redis.call('HMGET', key, 'from', 'used', 'held')
  if (fields[2] or '') ~= known then return end
  local from = tonumber(fields[1])
  if from and from > counter.from then return end
  budget.begin(key, counter, run, used)
  if from == counter.from then redis.call('HSET', key, 'held', fields[3]) end
end

function budget.settle(key, from, held, used)
  if tonumber(redis.call('HGET', key, 'from')) ~= from then return end
  redis.call('HINCRBY', key, 'held', exact(-held))
  redis.call('HINCRBY', key, 'used', exact(used))
end

-- What is open or queued is a sorted set of names, each until it must have ended.
local function count_leases(key, time)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', time)
  return redis.call('ZCARD', key)
end

local function lease(key, name, ends)
  redis.call('ZADD', key, exact(ends), name)
  redis.call('EXPIREAT', key, math.ceil(redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]) + 1)
end

