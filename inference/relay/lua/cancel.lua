-- ARGV: event that ends a waiting job, abandoned (0/1), then job ids
-- Returns per job: gone, done, dropped (it waited) or asked (its replica will stop it).
local event, abandoned = ARGV[1], ARGV[2] == '1'
local outcomes = {}
for index = 3, #ARGV do
  local job = ARGV[index]
  local fields = redis.call('HMGET', JOB .. job, 'state', 'replica')
  local state = fields[1]
  if not state then
    -- A submission may still be on its way: leave a mark that refuses it.
    redis.call('HSET', JOB .. job, 'state', 'void')
    redis.call('EXPIRE', JOB .. job, 30)
    outcomes[#outcomes + 1] = 'gone'
  elseif state == 'done' then
    if abandoned then redis.call('DEL', JOB .. job, EVENTS .. job) end
    outcomes[#outcomes + 1] = 'done'
  elseif state == 'void' then
    outcomes[#outcomes + 1] = 'gone'
  else
    if abandoned then redis.call('HSET', JOB .. job, 'abandoned', 1) end
    if state == 'waiting' then
      end_job(job, event)
      outcomes[#outcomes + 1] = 'dropped'
    else
      redis.call('SADD', CANCELLED .. fields[2], job)
      redis.call('PUBLISH', INBOX .. fields[2], job)
      outcomes[#outcomes + 1] = 'asked'
    end
  end
end
return outcomes
