-- ARGV: owner, name, holder, field ('run', 'answer', or '' to give the claim up), value,
--   seconds to keep it, most answers of the owner, most bytes of them
-- Puts an answer where a claim was; the owner's oldest make room. Returns 0 if the claim was lost.
local owner, name = ARGV[1], ARGV[2]
local key, index = ANSWER .. owner .. ':' .. name, ANSWERS .. owner
if redis.call('HGET', key, 'holder') ~= ARGV[3] then return 0 end
if ARGV[4] == '' then
  redis.call('DEL', key)
  return 1
end
local seconds = tonumber(ARGV[6])
redis.call('HSET', key, ARGV[4], ARGV[5])
redis.call('EXPIRE', key, seconds)
redis.call('ZREMRANGEBYSCORE', index, '-inf', now())
redis.call('ZADD', index, now() + seconds, name .. ':' .. #ARGV[5])
redis.call('EXPIRE', index, seconds)
local num_answers, num_bytes = 0, 0
for _, member in ipairs(redis.call('ZREVRANGE', index, 0, -1)) do
  local other, size = string.match(member, '^(.*):(%d+)$')
  num_answers, num_bytes = num_answers + 1, num_bytes + tonumber(size)
  if num_answers > tonumber(ARGV[7]) or num_bytes > tonumber(ARGV[8]) then
    redis.call('DEL', ANSWER .. owner .. ':' .. other)
    redis.call('ZREM', index, member)
  end
end
return 1
