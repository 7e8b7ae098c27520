-- ARGV: abandoned (0/1), then job ids
-- Returns per job: gone, done, dropped (it waited) or asked (its replica will stop it).
local outcomes = {}
for index = 2, #ARGV do
  local job = ARGV[index]
  if redis.call('EXISTS', JOB .. job) == 0 then
    -- A submission may still be on its way: leave a mark that refuses it.
    redis.call('HSET', JOB .. job, 'state', 'void')
    redis.call('EXPIRE', JOB .. job, 30)
  end
  outcomes[#outcomes + 1] = stop_job(job, ARGV[1] == '1')
end
return outcomes
