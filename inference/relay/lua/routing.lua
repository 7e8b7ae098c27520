-- Where a job best runs: on a replica that has computed the beginning of its prompt, unless others
-- have much less to do. A prompt is known by its marks ("length.hash", shortest first); each replica
-- has those of the jobs it took. What is told here is a guess: being wrong costs a prefill, no more.

local MAX_MARKS = 8192
-- A slot that has nothing else to do leaves a job to the replica that is warm for it: the longer
-- where that one was woken for it, else as long as computing what is warm there would take, within
-- these bounds.
local MIN_HOLD_SECONDS = 0.02
local MAX_HOLD_SECONDS = 0.25
-- One that has other work leaves it that many times longer.
local PATIENCE_BESIDE_WORK = 8
local MAX_PASSED = 64

local function read_marks(text)
  local marks = {}
  for mark in string.gmatch(text or '', '%S+') do marks[#marks + 1] = mark end
  return marks
end

local function length_of(mark)
  return mark and tonumber(string.match(mark, '^%d+')) or 0
end

-- How many tokens of the beginning a replica has had lately.
local function warm_tokens(replica, marks)
  if #marks == 0 then return 0 end
  local known = redis.call('ZMSCORE', WARM .. replica, unpack(marks))
  for index = #marks, 1, -1 do
    if known[index] then return length_of(marks[index]) end
  end
  return 0
end

local function note_warm(replica, marks, time)
  if #marks == 0 then return end
  local row, stamp = {}, exact(time)
  for _, mark in ipairs(marks) do
    row[#row + 1] = stamp
    row[#row + 1] = mark
  end
  redis.call('ZADD', WARM .. replica, unpack(row))
  redis.call('ZREMRANGEBYRANK', WARM .. replica, 0, -MAX_MARKS - 1)
  redis.call('EXPIRE', WARM .. replica, WARM_RETENTION)
end

-- Find where a job should run: where the share of its prompt that is warm exceeds most the share of
-- slots that are busy, among replicas with a free slot if there are any. So one that has half of a
-- prompt more than another may be busier by half its slots. Returns {replica, has it a free slot, tokens that are warm there and
-- not everywhere}, or nil where all are busy and none is warm: then whoever is free first takes it.
local function choose_home(replicas, marks)
  local best, coldest
  local num_tokens = math.max(1, length_of(marks[#marks]))
  for _, replica in ipairs(replicas) do
    local num_slots = math.max(1, tonumber(redis.call('HGET', REPLICA .. replica, 'slots') or 1))
    local num_busy = redis.call('SCARD', AWAKE .. replica) + redis.call('ZCARD', DUE .. replica)
    local warm = warm_tokens(replica, marks)
    local one = { replica = replica, is_free = num_busy < num_slots, warm = warm }
    one.score = warm / num_tokens - num_busy / num_slots
    coldest = math.min(coldest or warm, warm)
    if not best or (one.is_free and not best.is_free)
      or (one.is_free == best.is_free and one.score > best.score) then best = one end
  end
  best.lead = best.warm - coldest
  if best.is_free or best.lead > 0 then return best end
end

-- Mean seconds that a replica computes at a token of a prompt.
local function prompt_pace(replica)
  return tonumber(redis.call('HGET', REPLICA .. replica, 'pace') or 0)
end

-- Mean a waiting job for a replica. One that has a free slot for it should take it at once, so
-- that others need not wait before they take it.
local function send_home(job, home, deadline, time)
  local hold = 0
  if home.lead > 0 and home.is_free then
    hold = MAX_HOLD_SECONDS
  elseif home.lead > 0 then
    local pace = prompt_pace(home.replica)
    hold = pace > 0 and home.lead * pace or MAX_HOLD_SECONDS
    hold = math.max(MIN_HOLD_SECONDS, math.min(MAX_HOLD_SECONDS, hold))
  end
  redis.call('HSET', JOB .. job, 'home', home.replica, 'hold', exact(hold))
  if home.is_free then redis.call('HSET', JOB .. job, 'passed', exact(time)) end
  redis.call('ZADD', DUE .. home.replica, deadline, job)
end

-- Those of replicas that have a sleeping slot.
local function sleeping_replicas(replicas)
  local found = {}
  for _, replica in ipairs(replicas) do
    if sleeping_slots({ replica }) > 0 then found[#found + 1] = replica end
  end
  return found
end

-- Choose one of replicas, rather not the given one. Returns '' where there is none.
local function choose_besides(replicas, avoided)
  for _, replica in ipairs(replicas) do
    if replica ~= avoided then return replica end
  end
  return replicas[1] or ''
end

-- What a job is to a free slot of a replica: 'mine', 'theirs', or 'spare': theirs, but to be taken
-- where there is nothing else. Whoever passes it over begins to count its patience.
local function look_at(job, replica, is_ready, time)
  local fields = redis.call('HMGET', JOB .. job, 'home', 'hold', 'passed')
  local home, hold = fields[1], tonumber(fields[2] or 0)
  if not home or home == replica or hold == 0 or not is_ready[home] then return 'mine' end
  local passed = tonumber(fields[3] or time)
  if not fields[3] then redis.call('HSET', JOB .. job, 'passed', exact(time)) end
  if time - passed >= hold * PATIENCE_BESIDE_WORK then return 'mine' end
  return time - passed >= hold and 'spare' or 'theirs'
end

-- The first of a class that a replica should take now; nil if it should wait a moment. Each job is
-- passed over for a bounded time, and only for others of its class.
local function first_for(deployment, replica, class, is_barred, time)
  local is_ready, spare = {}, nil
  for _, one in ipairs(ready_replicas(deployment)) do is_ready[one] = true end
  local row = redis.call('ZRANGE', WAITING .. deployment, 0, MAX_PASSED - 1, 'WITHSCORES')
  for index = 1, #row, 2 do
    local job = row[index]
    if class_of(tonumber(row[index + 1])) ~= class then break end
    if not is_barred(job) then
      local look = look_at(job, replica, is_ready, time)
      if look == 'mine' then return job end
      if look == 'spare' then spare = spare or job end
    end
  end
  return spare
end

