-- ARGV: most events per job, then job, first seq wanted; two values per job
-- Returns per job {state, replica, is its lease alive (0/1), replica to send a ticket to or '', ahead,
--   expected wait in ms, seq, event, …}.
local answers, sleeping, time = {}, {}, now()
for index = 2, #ARGV, 2 do
  local job = ARGV[index]
  local fields = redis.call('HMGET', JOB .. job, 'state', 'replica', 'deployment', 'home')
  local state, replica, deployment = fields[1] or '', fields[2] or '', fields[3]
  local answer = { state, replica, 0, '', 0, -1 }
  if state == 'running' then
    answer[3] = redis.call('EXISTS', REPLICA .. replica)
  elseif state == 'waiting' then
    if not sleeping[deployment] then
      sleeping[deployment] = sleeping_replicas(ready_replicas(deployment))
    end
    -- The one that it was meant for has not taken it.
    answer[4] = choose_besides(sleeping[deployment], fields[4])
    answer[5] = redis.call('ZRANK', WAITING .. deployment, job) or 0
    answer[6] = expected_wait(deployment, answer[5], time)
  end
  local entries = redis.call('XRANGE', EVENTS .. job, '0-' .. ARGV[index + 1], '+', 'COUNT', ARGV[1])
  for _, entry in ipairs(entries) do
    answer[#answer + 1] = tonumber(string.sub(entry[1], 3))
    answer[#answer + 1] = entry[2][2]
  end
  answers[#answers + 1] = answer
end
return answers
