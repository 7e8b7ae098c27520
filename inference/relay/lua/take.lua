-- ARGV: deployment, replica, finished job or ''
-- Returns {payload, attempt, events so far, milliseconds since it came} of the job whose turn it
-- is, now running on the replica;
-- 'later' where only suspects wait and the replica tries one already; or nothing.
local deployment, replica, finished = ARGV[1], ARGV[2], ARGV[3]
local is_trying = redis.call('EXISTS', TRIAL .. replica) == 1
local time = now()

local function is_suspect(job)
  return tonumber(redis.call('HGET', JOB .. job, 'strikes') or 0) > 0
end

local function first_unsuspected()
  for _, job in ipairs(redis.call('ZRANGE', WAITING .. deployment, 0, 511)) do
    if not is_suspect(job) then return job end
  end
end

while true do
  local job = next_job(deployment)
  if job and is_trying and is_suspect(job) then
    job = first_unsuspected()
    if not job then return 'later' end
  end
  if not job then
    if finished ~= '' then redis.call('SREM', AWAKE .. replica, finished) end
    return false
  end
  local fields = redis.call('HMGET', JOB .. job, 'payload', 'attempt', 'deadline', 'priority', 'owner', 'cost',
    'arrived')
  if not fields[1] then
    unqueue(deployment, job, 0, '')
  elseif tonumber(fields[3]) < time then
    end_job(job, LATE_EVENT)
  else
    charge(deployment, job, tonumber(fields[4]), fields[5], tonumber(fields[6]))
    note_take(deployment, time)
    if is_suspect(job) then redis.call('SET', TRIAL .. replica, job, 'EX', GRACE) end
    redis.call('HSET', JOB .. job, 'state', 'running', 'replica', replica)
    redis.call('SADD', RUNNING .. replica, job)
    if finished ~= '' then redis.call('SREM', AWAKE .. replica, finished) end
    redis.call('SADD', AWAKE .. replica, job)
    local waited = math.max(0, time - tonumber(fields[7] or time))
    return { fields[1], fields[2], redis.call('XLEN', EVENTS .. job), math.ceil(waited * 1000) }
  end
end
