-- Limits: what a request may take at most is taken before it begins, and what its jobs have not used
-- is given back when they end.
--
-- A meter, as JSON, names the request, its jobs, and all that counts what it takes:
--   request, seconds (how long its jobs may take), least (tokens that an answer without a bound must
--   be allowed), jobs = {{id, prompt, completion or -1 for as many as may be, room}…},
--   counters = {{kind, name, bound, from, to, revision, prices of a prompt's token, a cached and an
--   answer's}…}; from and to, the window of a budget, are 0 where there is none.
-- Where a limit leaves an answer without a bound less than its room, that is granted.

local HOLD_GRACE = 90
local MINUTES = { requests = true, tokens = true, input = true, output = true }
local MEASURES_ANSWERS = { tokens = true, output = true, spent = true, money = true }

local COUNTER_FIELDS = { 'kind', 'name', 'bound', 'from', 'to', 'revision', 'input', 'cached',
  'output' }

local function read_counter(counter)
  for index, field in ipairs(COUNTER_FIELDS) do counter[field] = counter[index] end
  counter.key = COUNTER .. counter.kind .. ':' .. counter.name
  return counter
end

local function read_meter(text)
  local meter = cjson.decode(text)
  for _, counter in ipairs(meter.counters) do read_counter(counter) end
  return meter
end

-- What a counter counts of so many tokens, at most.
local function weigh(counter, prompt, completion)
  local kind = counter.kind
  if kind == 'input' then return prompt end
  if kind == 'output' then return completion end
  if kind == 'money' then
    return prompt * math.max(counter.input, counter.cached) + completion * counter.output
  end
  return prompt + completion
end

local function weigh_usage(counter, usage)
  if counter.kind ~= 'money' then return weigh(counter, usage.prompt, usage.completion) end
  local fresh = usage.prompt - usage.cached
  return fresh * counter.input + usage.cached * counter.cached + usage.completion * counter.output
end

-- Tokens that a job's answer may have, where no more than a grant is left for it.
local function answer_of(job, grant)
  if job[3] >= 0 then return job[3] end
  return math.min(job[4], grant)
end

local function weigh_request(counter, meter, grant)
  if counter.kind == 'requests' then return 1 end
  if counter.kind == 'open' then return math.min(1, #meter.jobs) end
  if counter.kind == 'queued' then return #meter.jobs end
  local total = 0
  for _, job in ipairs(meter.jobs) do
    total = total + weigh(counter, job[2], answer_of(job, grant))
  end
  return total
end

-- How many tokens each answer may have so that all together weigh no more than what is left.
local function longest_answer(counter, meter)
  local each = weigh(counter, 0, 1)
  if not MEASURES_ANSWERS[counter.kind] or #meter.jobs == 0 or each == 0 then return math.huge end
  local left = counter.left
  for _, job in ipairs(meter.jobs) do left = left - weigh(counter, job[2], 0) end
  return math.floor(left / (#meter.jobs * each))
end

-- See what is left of a counter; where the least of the request does not fit, how long until it may.
local function look(counter, meter, moment)
  local least = weigh_request(counter, meter, meter.least)
  local used, held = 0, 0
  counter.reset = 0
  if MINUTES[counter.kind] then
    used = minute.used(counter.key, moment.second)
    counter.reset = minute.reset(counter.key, moment.steady)
  elseif counter.to > 0 then
    used, held = budget.read(counter.key, counter, moment.run)
    counter.reset = counter.to - moment.time
  else
    used = count_leases(counter.key, moment.time)
    if counter.kind == 'queued' then used = math.max(0, used - moment.num_free) end
  end
  counter.left = counter.bound - used - held
  if least == 0 or least <= counter.left then return end
  if MINUTES[counter.kind] then
    counter.wait = minute.wait(counter.key, moment.steady, least - counter.left)
  else
    -- What others hold may be given back at any time.
    counter.is_passing = counter.to == 0 or used + least <= counter.bound
    counter.wait = counter.is_passing and moment.pace or counter.reset
  end
end

-- What only the gateway can tell: which window is now, and what the ledger says was used in it.
local function missing(meter, moment)
  local unknown = {}
  for index, counter in ipairs(meter.counters) do
    if counter.to > 0 then
      if moment.time < counter.from or moment.time >= counter.to then
        return { 'window', exact(moment.time) }
      end
      local used, _, known = budget.read(counter.key, counter, moment.run)
      if not used then
        unknown[#unknown + 1] = index - 1
        unknown[#unknown + 1] = known
      end
    end
  end
  if #unknown > 0 then return { 'unknown', unknown } end
end

-- What is left of each counter, and how many milliseconds until all of it is there again.
local function states_of(meter)
  local states = {}
  for _, counter in ipairs(meter.counters) do
    states[#states + 1] = math.floor(math.max(0, counter.left))
    states[#states + 1] = math.ceil(math.max(0, counter.reset) * 1000)
  end
  return states
end

local function take_request(counter, meter, moment, ends)
  if counter.kind == 'requests' then
    minute.take(counter.key, moment.second, 1)
  elseif counter.kind == 'open' and #meter.jobs > 0 then
    lease(counter.key, meter.request, ends)
  end
end

-- Take what one job weighs. Returns what gives it back, or nil where there is nothing to.
local function take_job(counter, job, answer, moment, ends)
  local kind, stamp, amount = counter.kind, moment.second, 0
  if kind == 'requests' then return nil end
  if kind == 'queued' then
    lease(counter.key, job[1], ends)
  elseif kind ~= 'open' then
    amount = weigh(counter, job[2], answer)
    if counter.to > 0 then
      stamp = tonumber(redis.call('HGET', counter.key, 'from'))
      redis.call('HINCRBY', counter.key, 'held', exact(amount))
    elseif amount > 0 then
      minute.take(counter.key, stamp, amount)
    end
  end
  return { kind = kind, key = counter.key, stamp = stamp, amount = exact(amount), input = counter.input,
    cached = counter.cached, output = counter.output }
end

local function take_all(meter, grant, moment)
  local ends = moment.time + meter.seconds + HOLD_GRACE
  for _, counter in ipairs(meter.counters) do
    counter.left = counter.left - weigh_request(counter, meter, grant)
    if MINUTES[counter.kind] then counter.reset = moment.second + MINUTE_SECONDS - moment.steady end
    take_request(counter, meter, moment, ends)
  end
  for _, job in ipairs(meter.jobs) do
    local answer, takes, queues = answer_of(job, grant), {}, nil
    for _, counter in ipairs(meter.counters) do
      takes[#takes + 1] = take_job(counter, job, answer, moment, ends)
      queues = queues or counter.kind == 'queued' or nil
    end
    local held = { request = meter.request, is_only = #meter.jobs == 1, queues = queues,
      gateway = moment.gateway, takes = takes }
    if answer < job[4] and job[3] < 0 then held.grant = answer end
    redis.call('SET', HOLD .. job[1], cjson.encode(held))
    redis.call('ZADD', HOLDS, exact(ends), job[1])
    -- Should its gateway end before the job comes in, what it holds is let go.
    if moment.gateway then redis.call('SADD', FOLLOWED .. moment.gateway, job[1]) end
  end
  if #meter.jobs > 1 then
    redis.call('SET', HELD .. meter.request, #meter.jobs, 'EX', math.ceil(ends - moment.time) + 60)
  end
end

-- Take what a request needs, or nothing. A moment is {time, num_free: so many jobs more may queue
-- than may wait, pace: seconds until a place is free, gateway that follows the jobs, if one does}.
-- Returns {'ok', states}, {'limited', counter, wait in ms, is passing, states}, {'window', time} or
-- {'unknown', {counter, what is known of it, …}}.
local function reserve(text, moment)
  local meter = read_meter(text)
  moment.steady = steady_time(moment.time)
  moment.second, moment.run = math.floor(moment.steady), server_run(moment.time)
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
  take_all(meter, math.max(grant, meter.least), moment)
  return { 'ok', states_of(meter) }
end

-- What is held for a job, or nil where nothing is: ``grant`` is how long its answer may be.
local function read_hold(job)
  local text = redis.call('GET', HOLD .. job)
  return text and cjson.decode(text)
end

-- A slot has a job: it queues no more.
local function leave_queues(job)
  for _, take in ipairs((read_hold(job) or { takes = {} }).takes) do
    if take.kind == 'queued' then redis.call('ZREM', take.key, job) end
  end
end

local function settle_take(take, job, request, is_last, usage)
  if take.kind == 'queued' then
    redis.call('ZREM', take.key, job)
  elseif take.kind == 'open' then
    if is_last then redis.call('ZREM', take.key, request) end
  elseif MINUTES[take.kind] then
    minute.give_back(take.key, take.stamp, tonumber(take.amount) - weigh_usage(take, usage))
  else
    budget.settle(take.key, take.stamp, tonumber(take.amount), weigh_usage(take, usage))
  end
end

-- Let a job have taken what it used. Safe to repeat: a hold is settled once. A counter that cannot
-- be settled must keep neither the others nor the job from their end.
local function settle_limits(job, usage)
  local held = read_hold(job)
  if not held then return end
  redis.call('DEL', HOLD .. job)
  redis.call('ZREM', HOLDS, job)
  local is_last = held.is_only or redis.call('DECR', HELD .. held.request) <= 0
  if is_last and not held.is_only then redis.call('DEL', HELD .. held.request) end
  for _, take in ipairs(held.takes) do
    local is_settled, trouble = pcall(settle_take, take, job, held.request, is_last, usage)
    if not is_settled then
      redis.log(redis.LOG_WARNING, take.key .. ' is not settled: ' .. tostring(trouble))
    end
  end
end

-- Give back all that is held for a job that was never queued.
local function release_hold(job)
  local held = read_hold(job)
  if held and held.gateway then redis.call('SREM', FOLLOWED .. held.gateway, job) end
  settle_limits(job, { prompt = 0, cached = 0, completion = 0 })
end

