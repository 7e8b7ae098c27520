-- What limits count, each counter by itself: use of the last minute, what is spent of a budget, and
-- what is open or queued now.
--
-- Time is the server's own, and never goes back: where its clock does, counters go on from where
-- they were. A minute is the last 60 seconds and the part of one in which they began, so that no 60
-- seconds ever see more than the limit.

local MINUTE_SECONDS = 61
local UNKNOWN_RUN = '' -- of the server, to which no ledger has told what is used

-- Seconds that only grow, as fast as the server's clock does while that goes forward; and which run
-- of the server this is: what another one has left behind may be old. Looked at once a second: within
-- one it makes no difference whether a clock goes back.
local function read_clock(time)
  local known = redis.call('HMGET', CLOCK, 'at', 'lag', 'run')
  local at, lag, run = tonumber(known[1] or 0), tonumber(known[2] or 0), known[3]
  if time < at then
    lag = lag + at - time
  elseif run and math.floor(time + lag) == math.floor(at + lag) then
    return time + lag, run
  end
  local info = redis.pcall('INFO', 'server')
  run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or 'unknown'
  redis.call('HSET', CLOCK, 'at', exact(time), 'lag', exact(lag), 'run', run)
  return time + lag, run
end

-- A minute is a hash: amounts by second, their sum, and the first and the last of these seconds.
-- What is read of it is kept in its counter, so that one call reads it and one writes it.
local minute = {}

function minute.read(counter, second)
  local key = counter.key
  local fields = redis.call('HMGET', key, 'sum', 'first', 'last', second)
  counter.used, counter.now = 0, 0
  if not fields[1] then return end
  local sum, first, last = tonumber(fields[1]), tonumber(fields[2]), tonumber(fields[3])
  local past = second - MINUTE_SECONDS
  if last <= past then
    redis.call('DEL', key)
    return
  end
  if first <= past then
    for old = first, past do
      sum = sum - tonumber(redis.call('HGET', key, old) or 0)
      redis.call('HDEL', key, old)
    end
    first = past + 1
    redis.call('HSET', key, 'sum', sum, 'first', first)
  end
  counter.used, counter.now, counter.first, counter.last = sum, tonumber(fields[4] or 0), first, last
end

function minute.take(counter, second, amount)
  redis.call('HSET', counter.key, second, counter.now + amount, 'sum', counter.used + amount,
    'first', counter.first or second, 'last', second)
  if counter.last ~= second then redis.call('EXPIRE', counter.key, 2 * MINUTE_SECONDS) end
end

-- Give back to the second it was taken in, unless that is over.
function minute.give_back(key, second, amount)
  if amount == 0 then return end
  local fields = redis.call('HMGET', key, second, 'sum')
  if not fields[1] then return end
  redis.call('HSET', key, second, tonumber(fields[1]) - amount, 'sum', tonumber(fields[2]) - amount)
end

-- Seconds until so much of it is over.
function minute.wait(counter, time, amount)
  if not counter.first then return MINUTE_SECONDS end -- more than it ever allows
  for second = counter.first, counter.last do
    amount = amount - tonumber(redis.call('HGET', counter.key, second) or 0)
    if amount <= 0 then return second + MINUTE_SECONDS - time end
  end
  return counter.last + MINUTE_SECONDS - time
end

-- Seconds until all of it is over.
function minute.reset(counter, time)
  return counter.last and counter.last + MINUTE_SECONDS - time or 0
end

-- A budget is a hash: its window, the run of the server and the revision of the limit that it counts
-- for, what is used, what jobs hold that have not ended, and at which revision one was refused. A
-- job counts in the window that it ends in, as in the ledger: what is held goes from window to window,
-- 'kept' is since when, and what ended late, before the next window was begun, the ledger tells.
local budget = {}

function budget.begin(counter, run, used)
  redis.call('HSET', counter.key, 'from', counter.from, 'to', counter.to, 'run', run, 'revision',
    counter.revision, 'used', used, 'held', exact(counter.held), 'kept', counter.kept)
  redis.call('HDEL', counter.key, 'refused', 'late')
  redis.call('EXPIREAT', counter.key, counter.to + BUDGET_RETENTION)
  counter.since, counter.used, counter.known = counter.from, 0, '0'
end

-- See what is used and held, since when, and what is known of that: ``used`` is nil where only the
-- ledger can tell. What jobs take and use meanwhile counts already.
function budget.read(counter, run)
  local fields = redis.call('HMGET', counter.key, 'from', 'run', 'revision', 'used', 'held', 'kept',
    'late')
  counter.since, counter.known = tonumber(fields[1]), fields[4]
  counter.held, counter.kept = tonumber(fields[5] or 0), tonumber(fields[6] or fields[1] or counter.from)
  local is_old = not counter.since or counter.since < counter.from
  local is_crossed = is_old and (counter.held > 0 or fields[7])
  if fields[2] ~= run or tonumber(fields[3]) < counter.revision or is_crossed then
    if is_old then budget.begin(counter, UNKNOWN_RUN, 0) end
    counter.used = nil
  elseif is_old then
    budget.begin(counter, run, 0)
  else
    counter.used = tonumber(fields[4])
  end
end

-- Set what the ledger says is used; not where that has changed since somebody asked it.
function budget.restore(counter, run, known, used)
  local fields = redis.call('HMGET', counter.key, 'from', 'used', 'held', 'kept')
  if fields[2] ~= known or tonumber(fields[1]) > counter.from then return end
  counter.held, counter.kept = tonumber(fields[3]), tonumber(fields[4] or fields[1])
  budget.begin(counter, run, used)
end

function budget.settle(key, since, held, used)
  local fields = redis.call('HMGET', key, 'from', 'to', 'kept')
  local kept = tonumber(fields[3] or fields[1])
  if not kept or since < kept then return end
  redis.call('HINCRBY', key, 'held', exact(-held))
  redis.call('HINCRBY', key, 'used', exact(used))
  if fields[2] and now() >= tonumber(fields[2]) then redis.call('HSET', key, 'late', 1) end
end

-- What is open or queued is a sorted set of names, each until it must have ended. What was not let go
-- by then does not count; sweeps let it go.
local leases = {}

function leases.count(key, time)
  return redis.call('ZCOUNT', key, '(' .. exact(time), '+inf')
end

function leases.take(key, name, ends)
  redis.call('ZADD', key, exact(ends), name)
end
