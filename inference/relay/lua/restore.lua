-- ARGV: counter as JSON, what was known of it, what the ledger says is used
local counter = read_counter(cjson.decode(ARGV[1]))
local _, run = read_clock(now())
budget.restore(counter, run, ARGV[2], ARGV[3])
