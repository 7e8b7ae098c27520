-- ARGV: job, deployment, owner, gateway, deadline, payload, cost, priority, attempt, most waiting,
--   most waiting of the owner, fingerprint, durable (0/1), marks, bill ('' for none), stake ('' for
--   none, see reserving.lua), meter (of the request, with its first job; '' for none)
-- Returns {status, jobs ahead, replica to send a ticket to or '', have others a free slot (0/1),
--   expected wait in ms, what is left of limits}, or what ``reserve`` says where that is not 'ok';
--   asking twice adds a job once.
local job, deployment, owner, gateway = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local deadline, cost, priority = tonumber(ARGV[5]), tonumber(ARGV[7]), tonumber(ARGV[8])
local waiting, time = WAITING .. deployment, now()

local state = redis.call('HGET', JOB .. job, 'state')
if state == 'void' then return { 'cancelled', 0, '', 0, 0, {} } end
if state then return { 'ok', redis.call('ZRANK', waiting, job) or 0, '', 0, 0, {} } end
if redis.call('EXISTS', POISON .. ARGV[12]) == 1 then return { 'poison', 0, '', 0, 0, {} } end
-- Nothing is taken in that could not be written down.
if redis.call('XLEN', USAGE) >= MAX_UNRECORDED then return { 'unrecorded', 0, '', 0, 0, {} } end

local replicas = ready_replicas(deployment)
if #replicas == 0 then return { 'no_replica', 0, '', 0, 0, {} } end
local num_sleeping = sleeping_slots(replicas)
local num_waiting = redis.call('ZCARD', waiting)
if num_waiting - num_sleeping >= tonumber(ARGV[10]) then
  return { 'full', num_waiting, '', 0, expected_wait(deployment, num_waiting, time), {} }
end
local line = line_of(deployment, priority, owner)
local num_own = redis.call('LLEN', line)
if num_own - num_sleeping >= tonumber(ARGV[11]) then
  -- There is room again when the owner's first job is taken.
  local num_ahead = redis.call('ZRANK', waiting, redis.call('LINDEX', line, 0)) or 0
  return { 'owner_full', num_own, '', 0, expected_wait(deployment, num_ahead + 1, time), {} }
end

-- The first job of a request takes what all of them need, or none comes in.
local states, held = {}, nil
if ARGV[17] ~= '' then
  local outcome, taken = reserve(ARGV[17], { time = time, num_free = num_sleeping,
    pace = math.max(PLACE_SECONDS, expected_wait(deployment, 1, time) / 1000),
    gateway = ARGV[13] ~= '1' and gateway or nil })
  if outcome[1] ~= 'ok' then return outcome end
  states, held = outcome[2], taken
else
  held = read_hold(job)
end

local fields = { 'state', 'waiting', 'deployment', deployment, 'owner', owner, 'gateway', gateway,
  'deadline', ARGV[5], 'payload', ARGV[6], 'cost', math.max(1, cost), 'priority', priority,
  'attempt', ARGV[9], 'print', ARGV[12], 'marks', ARGV[14] }
local function set(name, value)
  if not value or value == '' then return end
  fields[#fields + 1] = name
  fields[#fields + 1] = value
end
set('bill', ARGV[15])
set('stake', ARGV[16])
set('grant', held and held.grant)
set('queues', held and queues_of(held))
if ARGV[13] == '1' then set('durable', 1) end
redis.call('HSET', JOB .. job, unpack(fields))
-- Long: what has not been ended yet must be there for who ends it, and writes down what it used.
redis.call('EXPIREAT', JOB .. job, math.ceil(deadline) + UNENDED_RETENTION)
if ARGV[13] ~= '1' then redis.call('SADD', FOLLOWED .. gateway, job) end
enqueue(deployment, job, priority, owner, cost, time)
redis.call('ZADD', DEADLINES, ARGV[5], job)
redis.call('SADD', BACKLOG, deployment)
redis.call('ZADD', GATEWAYS, time, gateway)
note_use(deployment)

local ticket, has_spare = '', 0
local home = choose_home(replicas, read_marks(ARGV[14]))
if home then
  send_home(job, home, ARGV[5], time)
  if home.is_free then
    ticket = home.replica
    has_spare = num_sleeping > sleeping_slots({ ticket }) and 1 or 0
  end
end
local num_ahead = redis.call('ZRANK', waiting, job)
return { 'ok', num_ahead, ticket, has_spare, expected_wait(deployment, num_ahead, time), states }
