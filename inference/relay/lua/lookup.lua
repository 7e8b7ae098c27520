-- ARGV: owner, then conversations
-- Returns for each that the owner has: {conversation, run, time it began, time it ended or 0}.
local found = {}
for index = 2, #ARGV do
  local fields = redis.call('HMGET', CONVERSATION .. ARGV[1] .. ':' .. ARGV[index], 'run', 'started')
  local jobs = fields[1] and jobs_of(ARGV[1], fields[1])
  if jobs then
    local ended = 0
    for _, job in ipairs(jobs) do
      -- What has ended is kept for a time that began then.
      local left = redis.call('TTL', JOB .. job)
      ended = math.max(ended, math.floor(now()) - DURABLE_RETENTION + math.max(0, left))
    end
    if goes_on(ARGV[1], fields[1]) then ended = 0 end
    found[#found + 1] = { ARGV[index], fields[1], fields[2], ended }
  end
end
return found
