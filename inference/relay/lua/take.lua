-- ARGV: deployment, replica, finished job or ''
-- Returns {payload, attempt, events so far, milliseconds since it came, most tokens that its limits
-- grant or ''} of the job whose turn it is, now running on the replica; 'later' where those that
-- wait are not for it now: others are warm for them, or they are suspects and the replica tries one
-- already; or nothing.
local deployment, replica, finished = ARGV[1], ARGV[2], ARGV[3]
local is_trying = redis.call('EXISTS', TRIAL .. replica) == 1
local time = now()

local function is_suspect(job)
  return tonumber(redis.call('HGET', JOB .. job, 'strikes') or 0) > 0
end

local function is_barred(job)
  return is_trying and is_suspect(job)
end

-- The turn of a lower class asks neither for warmth nor for a replica.
local function choose(turn)
  if not is_barred(turn.job) then
    if turn.is_lower then return turn.job end
    return first_for(deployment, replica, turn.class, is_barred, time)
  end
  for _, job in ipairs(redis.call('ZRANGE', WAITING .. deployment, 0, 511)) do
    if not is_barred(job) then return job end
  end
end

local function run(job, marks)
  if is_suspect(job) then redis.call('SET', TRIAL .. replica, job, 'EX', GRACE) end
  local node = redis.call('HGET', REPLICA .. replica, 'node') or ''
  redis.call('HSET', JOB .. job, 'state', 'running', 'replica', replica, 'ran', replica,
    'node', node)
  redis.call('SADD', RUNNING .. replica, job)
  if finished ~= '' then redis.call('SREM', AWAKE .. replica, finished) end
  redis.call('SADD', AWAKE .. replica, job)
  note_warm(replica, read_marks(marks), time)
end

while true do
  local turn = next_turn(deployment)
  if not turn then
    if finished ~= '' then redis.call('SREM', AWAKE .. replica, finished) end
    return false
  end
  local job = choose(turn)
  if not job then return 'later' end
  local row = redis.call('HMGET', JOB .. job, 'payload', 'attempt', 'deadline', 'priority', 'owner',
    'cost', 'arrived', 'marks', 'grant', 'queues')
  if not row[1] then
    unqueue(deployment, job, 0, '')
  elseif tonumber(row[3]) < time then
    end_job(job, LATE_EVENT)
  else
    end_turn(deployment, turn, job)
    charge(deployment, job, tonumber(row[4]), row[5], tonumber(row[6]))
    note_take(deployment, time)
    run(job, row[8])
    if row[10] then leave_queues(job, row[10]) end
    local waited = math.max(0, time - tonumber(row[7] or time))
    local num_events = redis.call('XLEN', EVENTS .. job)
    return { row[1], row[2], num_events, math.ceil(waited * 1000), row[9] or '' }
  end
end
