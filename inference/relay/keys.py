"""How every key and channel of the relay is named. The Lua scripts get the same prefixes."""

from inference.protocol.jobs import IDLE_PRIORITY
from inference.protocol.names import TICKET_QUEUE

LEASE_SECONDS = 5
LOADING_LEASE_SECONDS = 15
GATEWAY_LEASE_SECONDS = 6
RETENTION_SECONDS = 60
DURABLE_RETENTION_SECONDS = 3600
DEADLINE_GRACE_SECONDS = 120
WARM_SECONDS = 3600
UNENDED_RETENTION_SECONDS = 7 * 24 * 3600
# So many records may wait for the ledger before no more jobs are taken in.
MAX_UNRECORDED = 200_000
# How long what is spent of a budget is remembered beyond its window; then the ledger is asked.
BUDGET_RETENTION_SECONDS = 40 * 24 * 3600
# When to try again where running requests hold what is lacking, and nothing else is known.
PLACE_SECONDS = 1

# name -> prefix; each ends where an id, deployment, replica, node or gateway follows.
PREFIXES = {
    "JOB": "lm:job:",  # hash of a job: payload, state, replica, attempt
    "EVENTS": "lm:ev:",  # stream of a job, entry ids 0-1, 0-2, …
    "WAITING": "lm:wait:",  # zset of a deployment's waiting jobs, best first
    "ARRIVED": "lm:arrived:",  # zset of the same jobs by time of arrival
    "LINE": "lm:line:",  # list of an owner's waiting jobs in a deployment and class, oldest first
    "FAIR": "lm:fair:",  # hash of a deployment: virtual times of classes, what owners have used
    "PACE": "lm:pace:",  # hash of a deployment: how fast its waiting jobs are taken
    "READY": "lm:ready:",  # zset of a deployment's ready replicas by last beat
    "COMING": "lm:coming:",  # zset of a deployment's replicas that start or load, by last beat
    "REPLICA": "lm:rep:",  # hash of a replica's heartbeat, expires with its lease
    "RUNNING": "lm:run:",  # set of the jobs a replica runs
    "AWAKE": "lm:awake:",  # set of the jobs whose slot will look for another job
    "WARM": "lm:warm:",  # zset of the beginnings of prompts a replica has had lately, by last use
    "DUE": "lm:due:",  # zset of the waiting jobs meant for a replica, by deadline
    "TICKETS": TICKET_QUEUE,  # list of the tickets of a replica, which is Celery's
    "BINDING": "_kombu.binding." + TICKET_QUEUE,  # what Celery keeps beside it
    "LASTING_BINDING": "_kombu.binding_permanent." + TICKET_QUEUE,
    "CANCELLED": "lm:cancel:",  # set of the running jobs a replica should stop
    "TRIAL": "lm:trial:",  # the one suspect job that a replica tries
    "KEPT": "lm:kept:",  # how an owner's resumable answer is told, by owner and run
    "CONVERSATION": "lm:talk:",  # hash of the last run that a client gave this name, by owner
    "ANSWER": "lm:answer:",  # hash of the answer to an idempotency key, by owner and digest
    "ANSWERS": "lm:answers:",  # zset of an owner's kept answers with their sizes, by their end
    "WRONG": "lm:wrong:",  # how many wrong API keys came from a place
    "TRIED": "lm:tried:",  # how many attempts to sign in failed, from an address or for an account
    "KNOWN": "lm:known:",  # zset of the addresses that an account's owner signed in from, by when
    "COUNTER": "lm:count:",  # what a limit counts, by kind and whose it is
    "HOLD": "lm:hold:",  # what a job has taken of its limits, until it is settled
    "HELD": "lm:held:",  # how many jobs of a request have not been settled
    "POISON": "lm:poison:",  # marks the fingerprint of a job that ended replicas
    "TEXT": "lm:text:",  # list of a deployment's questions about text
    "TEXT_END": "lm:textend:",  # list that calls back a replica's threads that wait there
    "GATEWAY": "lm:gw:",  # channel of a gateway
    "FOLLOWED": "lm:gwjobs:",  # set of the jobs a gateway follows
    "INBOX": "lm:inbox:",  # channel of a replica: job ids to cancel
    "DESIRED": "lm:desired:",  # specs a node should run
    "NODE": "lm:node:",  # a node's heartbeat
    "WAKE": "lm:wake:",  # channel that tells a node its specs changed
}

# whole keys
REPLICAS = "lm:replicas"  # zset of all replicas by last beat
NODES = "lm:nodes"  # set of the names of all nodes
GATEWAYS = "lm:gateways"  # zset of all gateways by last beat
BACKLOG = "lm:backlog"  # set of the deployments with waiting jobs
DEADLINES = "lm:deadlines"  # zset of waiting jobs by deadline
UNREADY = "lm:unready"  # hash: deployment -> since when its waiting jobs have no ready replica
SWEEP = "lm:sweep"  # hash: since when sweeps run without a break
USED = "lm:used"  # zset of deployments by their last use
OUTLOOK = "lm:outlook"  # hash: deployment -> what the controller says of its replicas
CONTROLLER = "lm:controller"  # who decides, while it does
BATCHES = "lm:batches"  # who runs batches, while it does
NUMBERS = "lm:numbers"  # hash: deployment -> the number of its next replica
USAGE = "lm:usage"  # stream of what jobs used that have ended, until the ledger has it
HOLDS = "lm:holds"  # zset of the jobs that hold something, by when they must have ended
COUNTED = (
    "lm:counted"  # hash: counter -> the revision of its limit that older jobs were counted for
)
COUNTED_ANEW = "lm:counted-anew"  # zset of counters, by when older jobs are to be counted once more
CLOCK = "lm:clock"  # hash: the server's time as limits see it, and which run of the server it is

WHOLE = {
    "REPLICAS": REPLICAS,
    "GATEWAYS": GATEWAYS,
    "BACKLOG": BACKLOG,
    "DEADLINES": DEADLINES,
    "UNREADY": UNREADY,
    "SWEEP": SWEEP,
    "USED": USED,
    "OUTLOOK": OUTLOOK,
    "CONTROLLER": CONTROLLER,
    "USAGE": USAGE,
    "HOLDS": HOLDS,
    "COUNTED": COUNTED,
    "COUNTED_ANEW": COUNTED_ANEW,
    "CLOCK": CLOCK,
}


def job_key(job: str) -> str:
    """Name the hash of a job."""
    return PREFIXES["JOB"] + job


def events_key(job: str) -> str:
    """Name the event stream of a job."""
    return PREFIXES["EVENTS"] + job


def kept_key(owner: str, run: str) -> str:
    """Name what is kept of an owner's resumable answer: no other owner can spell it."""
    return f"{PREFIXES['KEPT']}{owner}:{run}"


def conversation_key(owner: str, conversation: str) -> str:
    """Name what an owner's conversation is."""
    return f"{PREFIXES['CONVERSATION']}{owner}:{conversation}"


def waiting_key(deployment: str) -> str:
    """Name the waiting set of a deployment."""
    return PREFIXES["WAITING"] + deployment


def replica_key(replica: str) -> str:
    """Name the heartbeat of a replica."""
    return PREFIXES["REPLICA"] + replica


def running_key(replica: str) -> str:
    """Name the set of jobs a replica has taken and not ended."""
    return PREFIXES["RUNNING"] + replica


def cancelled_key(replica: str) -> str:
    """Name the set of running jobs a replica should stop."""
    return PREFIXES["CANCELLED"] + replica


def counter_key(name: str) -> str:
    """Name the count of a limit, by its kind and whose it is: ``spent:key:7:day:UTC``."""
    return PREFIXES["COUNTER"] + name


def text_key(deployment: str) -> str:
    """Name the list of a deployment's questions about text."""
    return PREFIXES["TEXT"] + deployment


def text_end_key(replica: str) -> str:
    """Name the list that calls a replica's threads back from waiting for questions."""
    return PREFIXES["TEXT_END"] + replica


def gateway_channel(gateway: str) -> str:
    """Name the channel a gateway listens on."""
    return PREFIXES["GATEWAY"] + gateway


def inbox_channel(replica: str) -> str:
    """Name the channel that tells a replica to stop jobs."""
    return PREFIXES["INBOX"] + replica


def desired_key(node: str) -> str:
    """Name the specs a node should run."""
    return PREFIXES["DESIRED"] + node


def node_key(node: str) -> str:
    """Name the heartbeat of a node."""
    return PREFIXES["NODE"] + node


def wake_channel(node: str) -> str:
    """Name the channel that tells a node its specs changed."""
    return PREFIXES["WAKE"] + node


def lua_constants() -> str:
    """Give the same names to the scripts, as Lua locals."""
    names = {**PREFIXES, **WHOLE}
    lines = [f"local {name} = '{value}'" for name, value in names.items()]
    numbers = {
        "LEASE": LEASE_SECONDS,
        "LOADING_LEASE": LOADING_LEASE_SECONDS,
        "GATEWAY_LEASE": GATEWAY_LEASE_SECONDS,
        "RETENTION": RETENTION_SECONDS,
        "DURABLE_RETENTION": DURABLE_RETENTION_SECONDS,
        "GRACE": DEADLINE_GRACE_SECONDS,
        "UNENDED_RETENTION": UNENDED_RETENTION_SECONDS,
        "MAX_UNRECORDED": MAX_UNRECORDED,
        "WARM_RETENTION": WARM_SECONDS,
        "BUDGET_RETENTION": BUDGET_RETENTION_SECONDS,
        "PLACE_SECONDS": PLACE_SECONDS,
        "IDLE_CLASS": IDLE_PRIORITY,
    }
    lines += [f"local {name} = {value}" for name, value in numbers.items()]
    return "\n".join(lines) + "\n"
