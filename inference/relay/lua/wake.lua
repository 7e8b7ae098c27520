-- ARGV: deployment
-- Asks for a replica, unless the controller says that there is no hope of one.
-- Returns {number of ready replicas, whether a controller is at work (0/1), its outlook or ''}.
local deployment = ARGV[1]
local outlook = redis.call('HGET', OUTLOOK, deployment) or ''
if not string.find(outlook, '"hopeless"', 1, true) then note_use(deployment) end
return { #ready_replicas(deployment), redis.call('EXISTS', CONTROLLER), outlook }
