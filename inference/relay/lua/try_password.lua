-- ARGV: address, account ('' for none), seconds, most wrong ones in them
-- Counts a try before it is judged: for its address, for its account, and for both together. Who
-- comes from where the account's owner has signed in is slowed by what came from there, and by
-- nothing else. Returns in how many ms another may be judged; 0 if this one may.
local address, account, seconds, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

local function count(name)
  local key = TRIED .. name
  local number = redis.call('INCR', key)
  if number == 1 then redis.call('EXPIRE', key, seconds) end
  return number > most and math.max(1, redis.call('PTTL', key)) or 0
end

local both = address .. ':' .. account
if account ~= '' and redis.call('ZSCORE', KNOWN .. account, address) then return count(both) end
local wait = count(address)
-- Nothing more is kept of an address that is turned away.
if wait > 0 or account == '' then return wait end
return math.max(count(account), count(both))
