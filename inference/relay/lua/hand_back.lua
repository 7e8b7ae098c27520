-- ARGV: replica, jobs… Queues again those of the jobs that run on the replica. Returns their ids.
local given = {}
for index = 2, #ARGV do
  if requeue(ARGV[index], ARGV[1], 0) then given[#given + 1] = ARGV[index] end
end
return given
