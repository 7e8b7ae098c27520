-- What a job used, and the one record of it for the ledger: both told by the script that ends it.

local BILL_THAT_KEEPS_TEXT = '^{"text_days":'

-- What the kept events of a job tell: tokens told, and the prompt's if a slot had begun with it.
local function told_usage(job)
  local found = { prompt = 0, cached = 0, completion = 0 }
  local num_inputs = 0
  for _, entry in ipairs(redis.call('XRANGE', EVENTS .. job, '-', '+')) do
    local event = entry[2][2]
    local kind = string.sub(event, 3, 3)
    if kind == 's' then
      found.has_begun, found.cached = true, cjson.decode(event)[3]
    elseif kind == 't' then
      found.completion = found.completion + #cjson.decode(event)[3]
    elseif kind == 'v' then
      local vectors = cjson.decode(event)
      num_inputs = math.max(num_inputs, vectors[2] + #vectors[4])
    end
  end
  if not found.has_begun then return found end
  local payload = cjson.decode(redis.call('HGET', JOB .. job, 'payload'))
  if payload.prompt_tokens then
    found.prompt = #payload.prompt_tokens
  else
    for index = 1, num_inputs do found.prompt = found.prompt + #payload.inputs[index] end
  end
  return found
end

local function read_usage(job, event)
  local told = cjson.decode(event)
  local usage = { cached = 0, reasoning = 0, finish = 'error', error = '', answer_ms = 0 }
  if told[1] == 'd' then
    usage.finish, usage.prompt, usage.cached, usage.completion = told[2], told[3], told[4], told[5]
    usage.reasoning, usage.answer_ms = told[11] or 0, told[7][2]
    -- Stopped before anything of its prompt was there.
    if usage.finish == 'cancelled' and told[4] + told[5] + told[7][3] == 0 then usage.prompt = 0 end
  else
    usage.error, usage.prompt, usage.completion = told[2], told[5], told[6]
  end
  if told[1] == 'e' or usage.finish == 'cancelled' then
    local found = told_usage(job)
    for _, field in ipairs({ 'prompt', 'cached', 'completion' }) do
      usage[field] = math.max(usage[field], found[field])
    end
  end
  usage.cached = math.min(usage.cached, usage.prompt)
  return usage
end

-- What a job used, by its last event: {prompt, cached, completion, reasoning, finish, error}.
-- An end that came from outside its engine tells no counts: then the events before it do. What
-- cannot be read must not keep the job, and those whose events are written with it, from ending.
local function usage_of(job, event)
  local is_read, usage = pcall(read_usage, job, event)
  if is_read then return usage end
  redis.log(redis.LOG_WARNING, 'the usage of job ' .. job .. ' cannot be read: ' .. tostring(usage))
  return { prompt = 0, cached = 0, completion = 0, reasoning = 0, finish = 'error',
    error = 'usage_unreadable', answer_ms = 0 }
end

-- The words of an answer, as far as they were told.
local function told_text(job)
  local texts = {}
  for _, entry in ipairs(redis.call('XRANGE', EVENTS .. job, '-', '+')) do
    local event = entry[2][2]
    if string.sub(event, 3, 3) == 't' then texts[#texts + 1] = cjson.decode(event)[2] end
  end
  return table.concat(texts)
end

-- Put a job that has ended into the ledger's stream, with the bill it came with. Without one nobody
-- wants to know. The stream is never trimmed: who moves records to the ledger deletes them there.
local function note_usage(job, usage)
  local fields = redis.call('HMGET', JOB .. job, 'bill', 'deployment', 'ran', 'node', 'arrived',
    'first_at')
  local bill = fields[1]
  if not bill then return end
  local answer = string.find(bill, BILL_THAT_KEEPS_TEXT) and told_text(job) or ''
  -- Who does not stream is told all at the end; the engine knows how long the answer took.
  local ended = now()
  local first_at = tonumber(fields[6] or ended)
  if usage.answer_ms > 0 then first_at = math.min(first_at, ended - usage.answer_ms / 1000) end
  redis.call('XADD', USAGE, '*', 'job', job, 'bill', bill, 'deployment', fields[2],
    'replica', fields[3] or '', 'node', fields[4] or '', 'prompt', usage.prompt,
    'cached', usage.cached, 'completion', usage.completion, 'reasoning', usage.reasoning,
    'finish', usage.finish, 'error', usage.error, 'arrived', fields[5],
    'first_at', fields[6] and exact(first_at) or '', 'ended', exact(ended), 'answer', answer)
end

