-- ARGV: job, owner, gateway, most gateways
-- Has a durable job's events told to the gateway, too, from now on; of those that have been told for
-- longest some may make room. Returns its payload, or nothing where the owner has no such job: an
-- unknown id and somebody else's look alike.
local fields = redis.call('HMGET', JOB .. ARGV[1], 'owner', 'durable', 'payload', 'gateway')
if fields[1] ~= ARGV[2] or not fields[2] then return false end
local gateways = {}
for gateway in string.gmatch(fields[4], '%S+') do
  if gateway ~= ARGV[3] then gateways[#gateways + 1] = gateway end
end
gateways[#gateways + 1] = ARGV[3]
local first = math.max(1, #gateways - tonumber(ARGV[4]) + 1)
redis.call('HSET', JOB .. ARGV[1], 'gateway', table.concat(gateways, ' ', first))
return fields[3]
