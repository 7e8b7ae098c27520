-- ARGV: replica, event, jobs… Ends those of the jobs that still run on the replica. Returns their ids.
local failed = {}
for index = 3, #ARGV do
  local job = ARGV[index]
  if redis.call('SISMEMBER', RUNNING .. ARGV[1], job) == 1 then
    if end_job(job, ARGV[2]) then failed[#failed + 1] = job end
    redis.call('SREM', RUNNING .. ARGV[1], job)
  end
end
return failed
