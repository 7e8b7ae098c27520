-- How a request is measured: by limits that are new jobs are counted which came before, then all
-- limits are looked at, and what the request needs is taken of each of them, or of none.

local COUNTED_AGAIN_SECONDS = 2

-- What a job may use at most, and whether it is one of a limit's: its stake is {prompt, most tokens
-- of its answer, subjects…} in one text.
local function read_stake(stake, subject)
  local prompt, most, subjects = string.match(stake, '^(%d+) (%d+)(.*)$')
  local is_meant = subject == 'all' or string.find(subjects .. ' ', ' ' .. subject .. ' ', 1, true)
  if is_meant then return tonumber(prompt), tonumber(most) end
end

local function open_jobs()
  local jobs = {}
  local function note_all(found)
    for _, job in ipairs(found) do jobs[#jobs + 1] = job end
  end
  for _, replica in ipairs(redis.call('ZRANGE', REPLICAS, 0, -1)) do
    note_all(redis.call('SMEMBERS', RUNNING .. replica))
  end
  for _, deployment in ipairs(redis.call('SMEMBERS', BACKLOG)) do
    note_all(redis.call('ZRANGE', WAITING .. deployment, 0, -1))
  end
  return jobs
end

local function is_counted(held, counter)
  for _, take in ipairs(held.takes) do
    if take.key == counter.key then return true end
  end
  return false
end

-- Let a counter count a job that came in without it.
local function count_job(counter, job, fields, moment)
  local prompt, most = read_stake(fields[1], string.match(counter.name, '^%a+:%d+') or 'all')
  if not prompt or counter.kind == 'queued' and fields[3] ~= 'waiting' then return end
  local held = read_hold(job) or { request = job, is_only = true, takes = {} }
  if is_counted(held, counter) then return end
  local ends = tonumber(fields[2]) + HOLD_GRACE
  local answer = math.min(most, tonumber(fields[4] or most))
  if counter.kind == 'open' then leases.take(counter.key, held.request, ends) end
  held.takes[#held.takes + 1] = take_job(counter, { job, prompt }, answer, moment, ends)
  redis.call('SET', HOLD .. job, cjson.encode(held))
  redis.call('ZADD', HOLDS, exact(ends), job)
  if counter.kind == 'queued' then redis.call('HSET', JOB .. job, 'queues', queues_of(held)) end
end

-- Count all jobs that have not ended, once for each revision of a limit, and once more when no
-- gateway can let jobs in any more that has not heard of it: see sweep.lua.
local function count_older_jobs(counter, counted, moment)
  local revision = tonumber(counted or -1)
  if revision >= counter.revision then return end
  redis.call('HSET', COUNTED, counter.key, counter.revision)
  redis.call('EXPIRE', COUNTED, BUDGET_RETENTION)
  if revision ~= -counter.revision then
    redis.call('ZADD', COUNTED_ANEW, exact(moment.time + COUNTED_AGAIN_SECONDS), counter.key)
  end
  for _, job in ipairs(open_jobs()) do
    local fields = redis.call('HMGET', JOB .. job, 'stake', 'deadline', 'state', 'grant')
    if fields[1] then count_job(counter, job, fields, moment) end
  end
end

-- Make sure that all which may be open of a request's counters is counted; budgets that are known
-- have told so themselves.
local function count_older(meter, moment)
  local counters, keys = {}, {}
  for _, counter in ipairs(meter.counters) do
    if counter.revision and not counter.used then
      counters[#counters + 1], keys[#keys + 1] = counter, counter.key
    end
  end
  if #keys == 0 then return end
  local counted = redis.call('HMGET', COUNTED, unpack(keys))
  for index, counter in ipairs(counters) do count_older_jobs(counter, counted[index], moment) end
end

-- What only the gateway can tell: which window is now, and what the ledger says was used in it.
local function missing(meter, moment)
  local unknown = {}
  for index, counter in ipairs(meter.counters) do
    if counter.to then
      if moment.time < counter.from or moment.time >= counter.to then
        return { 'window', exact(moment.time) }
      end
      budget.read(counter, moment.run)
      if not counter.used then
        unknown[#unknown + 1] = index - 1
        unknown[#unknown + 1] = counter.known
      end
    end
  end
  count_older(meter, moment)
  if #unknown > 0 then return { 'unknown', unknown } end
end

-- Take what a request needs, or nothing. A moment is {time, num_free: so many jobs more may queue
-- than may wait, pace: seconds until a place is free, gateway that follows the jobs, if one does}.
-- Returns {'ok', states}, {'limited', counter, wait in ms, is passing, states}, {'window', time} or
-- {'unknown', {counter, what is known of it, …}}; and what is held for the first job.
local function reserve(text, moment)
  local meter = read_meter(text)
  moment.steady, moment.run = read_clock(moment.time)
  moment.second = math.floor(moment.steady)
  local lacking = missing(meter, moment)
  if lacking then return lacking end
  local worst, grant = nil, math.huge
  for index, counter in ipairs(meter.counters) do
    look(counter, meter, moment)
    grant = math.min(grant, longest_answer(counter, meter))
    if counter.wait and (not worst or counter.wait > meter.counters[worst].wait) then
      worst = index
    end
  end
  if worst then
    local counter = meter.counters[worst]
    return { 'limited', worst - 1, math.ceil(counter.wait * 1000), counter.is_passing and 1 or 0,
      states_of(meter) }
  end
  -- The least fits, as has just been seen.
  local held = take_all(meter, math.max(grant, meter.least), moment)
  return { 'ok', states_of(meter) }, held
end
