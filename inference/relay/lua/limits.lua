-- Limits: what a request may take at most is taken before it begins, and what its jobs have not used
-- is given back when they end.
--
-- A meter, as JSON, names the request, its jobs, and all that counts what it takes:
--   request, seconds (how long its jobs may take), least (tokens that an answer without a bound must
--   be allowed), jobs = {{id, prompt, completion or -1 for as many as may be, room}…},
--   counters = {{kind, name, bound}…}; where older jobs count too a counter has a revision, a budget
--   also from and to, its window, and one of money the prices of a token: input, cached, output.
-- Where a limit leaves an answer without a bound less than its room, that is granted.

local HOLD_GRACE = 90
local MINUTES = { requests = true, tokens = true, input = true, output = true }
local MEASURES_ANSWERS = { tokens = true, output = true, spent = true, money = true }

local function read_counter(counter)
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

-- Read what is used of a counter, and when all of it is there again.
local function read_use(counter, moment)
  if MINUTES[counter.kind] then
    minute.read(counter, moment.second)
    counter.reset = minute.reset(counter, moment.steady)
    return counter.used
  elseif counter.to then
    counter.reset = counter.to - moment.time -- it has been read already
    return counter.used + counter.held
  end
  counter.reset = 0
  local num_leases = leases.count(counter.key, moment.time)
  return counter.kind == 'open' and num_leases or math.max(0, num_leases - moment.num_free)
end

-- See what is left of a counter; where the least of the request does not fit, how long until it may.
local function look(counter, meter, moment)
  local least = weigh_request(counter, meter, meter.least)
  counter.left = counter.bound - read_use(counter, moment)
  if least == 0 or least <= counter.left then return end
  if MINUTES[counter.kind] then
    counter.wait = minute.wait(counter, moment.steady, least - counter.left)
  else
    -- What others hold may be given back at any time.
    counter.is_passing = not counter.to or counter.used + least <= counter.bound
    counter.wait = counter.is_passing and moment.pace or counter.reset
    if not counter.is_passing then redis.call('HSET', counter.key, 'refused', counter.revision) end
  end
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

-- Take what a request weighs of a counter, but for what its jobs take one by one.
local function take_request(counter, meter, grant, moment, ends)
  local total = weigh_request(counter, meter, grant)
  counter.left = counter.left - total
  if total == 0 then return end
  if MINUTES[counter.kind] then
    minute.take(counter, moment.second, total)
    counter.reset = moment.second + MINUTE_SECONDS - moment.steady
  elseif counter.kind == 'open' then
    leases.take(counter.key, meter.request, ends)
  end
end

-- Take what one job weighs. Returns what gives it back, or nil where there is nothing to.
local function take_job(counter, job, answer, moment, ends)
  local kind, take = counter.kind, { kind = counter.kind, key = counter.key }
  if kind == 'requests' then return nil end
  if kind == 'open' then return take end
  if kind == 'queued' then
    leases.take(counter.key, job[1], ends)
    return take
  end
  local amount = exact(weigh(counter, job[2], answer))
  take.stamp, take.amount = counter.since or moment.second, amount
  if counter.to then redis.call('HINCRBY', counter.key, 'held', amount) end
  if kind == 'money' then
    take.input, take.cached, take.output = counter.input, counter.cached, counter.output
  end
  return take
end

-- Take what a request weighs of all counters. Returns what is held for its first job.
local function take_all(meter, grant, moment)
  local ends, first = moment.time + meter.seconds + HOLD_GRACE, nil
  for _, counter in ipairs(meter.counters) do take_request(counter, meter, grant, moment, ends) end
  for _, job in ipairs(meter.jobs) do
    local answer, takes = answer_of(job, grant), {}
    for _, counter in ipairs(meter.counters) do
      takes[#takes + 1] = take_job(counter, job, answer, moment, ends)
    end
    local held = { request = meter.request, is_only = #meter.jobs == 1, gateway = moment.gateway,
      takes = takes }
    if answer < job[4] and job[3] < 0 then held.grant = answer end
    redis.call('SET', HOLD .. job[1], cjson.encode(held))
    redis.call('ZADD', HOLDS, exact(ends), job[1])
    -- Should its gateway end before the job comes in, what it holds is let go.
    if first and moment.gateway then redis.call('SADD', FOLLOWED .. moment.gateway, job[1]) end
    first = first or held
  end
  if #meter.jobs > 1 then
    redis.call('SET', HELD .. meter.request, #meter.jobs, 'EX', math.ceil(ends - moment.time) + 60)
  end
  return first
end

-- What is held for a job, or nil where nothing is: ``grant`` is how long its answer may be.
local function read_hold(job)
  local text = redis.call('GET', HOLD .. job)
  return text and cjson.decode(text)
end

-- The names of what counts a job while it queues, in one text; nil where nothing does.
local function queues_of(held)
  local names = {}
  for _, take in ipairs(held.takes) do
    if take.kind == 'queued' then names[#names + 1] = take.key end
  end
  return #names > 0 and table.concat(names, ' ') or nil
end

-- A slot has a job: it queues no more.
local function leave_queues(job, queues)
  for key in string.gmatch(queues, '%S+') do redis.call('ZREM', key, job) end
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
  local text = redis.call('GETDEL', HOLD .. job)
  if not text then return end
  local held = cjson.decode(text)
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
