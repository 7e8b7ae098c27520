-- ARGV: deployment, replica, finished job or '', event for jobs past their deadline
-- Returns {payload, attempt} of the best waiting job, now running on the replica, or nothing.
local deployment, replica, finished = ARGV[1], ARGV[2], ARGV[3]
local waiting = WAITING .. deployment
if finished ~= '' then redis.call('SREM', AWAKE .. replica, finished) end

local time = now()
while true do
  local job = redis.call('ZRANGE', waiting, 0, 0)[1]
  if not job then return false end
  local fields = redis.call('HMGET', JOB .. job, 'payload', 'attempt', 'deadline', 'priority',
    'start', 'owner', 'cost')
  if not fields[1] then
    unqueue(job, deployment, '', 0, 0)
  elseif tonumber(fields[3]) < time then
    end_job(job, ARGV[4])
  else
    local clock = 'v:' .. fields[4]
    local virtual = tonumber(redis.call('HGET', FAIR .. deployment, clock) or 0)
    if tonumber(fields[5]) > virtual then
      redis.call('HSET', FAIR .. deployment, clock, fields[5])
    end
    unqueue(job, deployment, fields[6], fields[4], 0)
    redis.call('HSET', JOB .. job, 'state', 'running', 'replica', replica)
    redis.call('SADD', RUNNING .. replica, job)
    redis.call('SADD', AWAKE .. replica, job)
    return { fields[1], fields[2] }
  end
end
