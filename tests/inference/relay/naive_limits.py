"""What counters should hold, kept in the plainest way: a model for the scripts."""

from collections import defaultdict

from inference.relay.limits import CounterKind

PROMPT = 4


class NaiveLimits:
    """What each counter should hold, kept in the plainest way."""

    def __init__(self, counters):
        self.counters = counters
        self.held = {}
        self.used = defaultdict(int)
        self.num_requests = 0

    def taken(self, counter):
        kind = counter.kind
        if kind is CounterKind.REQUESTS:
            return self.num_requests
        if kind is CounterKind.OPEN:
            return len({request for request, _ in self.held.values()})
        held = sum(weigh(counter, PROMPT, n) for _, n in self.held.values())
        return self.used[counter] + held

    def fits(self, need):
        return all(self.taken(one) + amount <= one.bound for one, amount in need.items())

    def take(self, request, jobs):
        self.num_requests += 1
        self.held |= {job.id: (request, job.max_tokens) for job in jobs}

    def settle(self, job, prompt, completion):
        del self.held[job]
        for counter in self.counters:
            self.used[counter] += weigh(counter, prompt, completion)


def weigh(counter, prompt, completion):
    if counter.kind is CounterKind.MONEY:
        return prompt * counter.prices.input + completion * counter.prices.output
    sides = {CounterKind.INPUT: (1, 0), CounterKind.OUTPUT: (0, 1)}.get(counter.kind, (1, 1))
    return prompt * sides[0] + completion * sides[1]


def need_of(counter, jobs):
    if counter.kind in (CounterKind.REQUESTS, CounterKind.OPEN):
        return 1
    return sum(weigh(counter, PROMPT, job.max_tokens) for job in jobs)


def check(client, naive):
    for counter in naive.counters:
        key = f"lm:count:{counter.kind}:{counter.subject}"
        if counter.window is not None:
            values = client.hmget(f"{key}:day:UTC", "used", "held")
            found = sum(int(value or 0) for value in values)
        elif counter.kind is CounterKind.OPEN:
            found = client.zcard(key)
        else:
            found = int(client.hget(key, "sum") or 0)
        assert found == naive.taken(counter) <= counter.bound
