-- ARGV: deployment, when it was used last as its caller knows, then the next
-- Forgets the use of deployments, unless somebody has wanted one meanwhile.
for index = 1, #ARGV, 2 do
  local used_at = redis.call('ZSCORE', USED, ARGV[index])
  if used_at and tonumber(used_at) <= tonumber(ARGV[index + 1]) then
    redis.call('ZREM', USED, ARGV[index])
  end
end
