-- ARGV: counter as JSON, what was known of it, what the ledger says is used
local counter = read_counter(cjson.decode(ARGV[1]))
budget.restore(counter.key, counter, server_run(now()), ARGV[2], ARGV[3])
