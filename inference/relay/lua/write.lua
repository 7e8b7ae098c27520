-- ARGV: job, attempt, seq, tokens used if it is the last one or '', event; five values per event,
--   seqs of a job in order
-- Appends the events and tells each gateway its own in one message.
-- Returns {job, status, last seq kept, …}: refused (fenced or gone) or gap (earlier ones missing).
local trouble, skipped, frames, known = {}, {}, {}, {}
local argv, call = ARGV, redis.call
for index = 1, #argv, 5 do
  local job, event = argv[index], argv[index + 4]
  if not skipped[job] then
    local fields = known[job]
    if not fields then
      fields = call('HMGET', JOB .. job, 'attempt', 'gateway', 'state', 'strikes', 'first_at')
      fields.kept = call('XLEN', EVENTS .. job)
      known[job] = fields
    end
    local seq = tonumber(argv[index + 2])
    local status = nil
    if fields[1] ~= argv[index + 1] or fields[3] ~= 'running' then
      -- A repeated write of what is kept already is no trouble.
      if fields[3] ~= 'done' or seq > fields.kept or fields[1] ~= argv[index + 1] then
        status = 'refused'
      end
    elseif seq > fields.kept + 1 then
      status = 'gap'
    elseif seq == fields.kept + 1 then
      call('XADD', EVENTS .. job, '0-' .. argv[index + 2], 'e', event)
      fields.kept = seq
      if seq == 1 then
        local deadline = call('HGET', JOB .. job, 'deadline')
        call('EXPIREAT', EVENTS .. job, math.ceil(tonumber(deadline)) + UNENDED_RETENTION)
      end
      local kind = (fields[4] or not fields[5]) and string.sub(event, 3, 3)
      if kind == 't' or kind == 'v' then
        if fields[4] then
          -- New tokens or vectors: it did not end this replica.
          call('HDEL', JOB .. job, 'strikes')
          call('DEL', TRIAL .. call('HGET', JOB .. job, 'replica'))
          fields[4] = nil
        end
        if not fields[5] then
          fields[5] = exact(now())
          call('HSET', JOB .. job, 'first_at', fields[5])
        end
      end
      local list = frames[fields[2]]
      if not list then
        list = {}
        frames[fields[2]] = list
      end
      list[#list + 1] = frame(job, argv[index + 2], event)
      if argv[index + 3] ~= '' then
        local place = call('HMGET', JOB .. job, 'replica', 'abandoned')
        settle(job, tonumber(argv[index + 3]))
        retire(job, place[1], fields[2], place[2], event)
        fields[3] = 'done'
      end
    end
    if status then
      skipped[job] = true
      trouble[#trouble + 1] = job
      trouble[#trouble + 1] = status
      trouble[#trouble + 1] = fields.kept
    end
  end
end
for gateway, list in pairs(frames) do publish(gateway, list) end
return trouble
