-- ARGV: meter
-- Counts a request that has no jobs. Returns what ``reserve`` does.
return (reserve(ARGV[1], { time = now(), num_free = 0, pace = PLACE_SECONDS }))
