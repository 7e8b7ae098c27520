-- ARGV: gateway. Shows that it lives: without this its jobs are stopped after some seconds.
redis.call('ZADD', GATEWAYS, now(), ARGV[1])
