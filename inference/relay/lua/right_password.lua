-- ARGV: address, account ('' for none), seconds to know the address, most addresses of an account
-- A try was right: it counts for nothing, and its address is known from now on.
local address, account = ARGV[1], ARGV[2]
local known = KNOWN .. account
if not redis.call('ZSCORE', known, address) then
  for _, name in ipairs({ address, account }) do
    if redis.call('EXISTS', TRIED .. name) == 1 then redis.call('DECR', TRIED .. name) end
  end
end
if account == '' then return end
redis.call('DEL', TRIED .. address .. ':' .. account)
redis.call('ZADD', known, now(), address)
redis.call('ZREMRANGEBYRANK', known, 0, -1 - tonumber(ARGV[4]))
redis.call('EXPIRE', known, ARGV[3])
