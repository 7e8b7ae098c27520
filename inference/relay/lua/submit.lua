-- ARGV: job, deployment, owner, gateway, deadline, payload, cost, priority, attempt, max_queue
-- Returns {status, number of jobs ahead, ticket wanted}; asking twice for one job adds it once.
local job, deployment, owner, gateway = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local deadline, cost, priority = tonumber(ARGV[5]), tonumber(ARGV[7]), tonumber(ARGV[8])
local waiting = WAITING .. deployment

local state = redis.call('HGET', JOB .. job, 'state')
if state == 'void' then return { 'cancelled', 0, 0 } end
if state then return { 'ok', redis.call('ZRANK', waiting, job) or 0, 0 } end

local replicas = ready_replicas(deployment)
if #replicas == 0 then return { 'no_replica', 0, 0 } end
local num_sleeping = sleeping_slots(replicas)
local num_waiting = redis.call('ZCARD', waiting)
if num_waiting - num_sleeping >= tonumber(ARGV[10]) then return { 'full', num_waiting, 0 } end

-- Start-time fair queuing: an owner's next job starts where its last one will have finished.
local fair = FAIR .. deployment
local virtual = tonumber(redis.call('HGET', fair, 'v:' .. priority) or 0)
local tag = 'f:' .. priority .. ':' .. owner
local start = math.max(virtual, tonumber(redis.call('HGET', fair, tag) or 0))
redis.call('HSET', fair, tag, string.format('%.17g', start + math.max(1, cost)))

redis.call('HSET', JOB .. job, 'state', 'waiting', 'deployment', deployment, 'owner', owner,
  'gateway', gateway, 'deadline', ARGV[5], 'payload', ARGV[6], 'cost', cost,
  'priority', priority, 'attempt', ARGV[9], 'start', string.format('%.17g', start))
redis.call('EXPIREAT', JOB .. job, math.ceil(deadline) + GRACE)
-- Higher priority first; 2^44 leaves room for 17 trillion tokens of virtual time per class.
redis.call('ZADD', waiting, string.format('%.17g', start - priority * 17592186044416), job)
redis.call('ZADD', DEADLINES, ARGV[5], job)
redis.call('SADD', BACKLOG, deployment)
return { 'ok', redis.call('ZRANK', waiting, job), num_sleeping > 0 and 1 or 0 }
