-- ARGV: deployment
-- Returns {slots of its ready replicas, how many of them sleep, jobs that wait above the lowest class}.
local deployment = ARGV[1]
local replicas, num_slots = ready_replicas(deployment), 0
for _, replica in ipairs(replicas) do
  num_slots = num_slots + tonumber(redis.call('HGET', REPLICA .. replica, 'slots') or 0)
end
local num_before = redis.call('ZCOUNT', WAITING .. deployment, '-inf', '(' .. IDLE_SCORE)
return { num_slots, sleeping_slots(replicas), num_before }
