"""All trials, in the order of the promises."""

from tests.chaos.trials import (
    broker,
    clients,
    database,
    gateways,
    health,
    hosts,
    isolation,
    ledger,
    limits,
    loading,
    overload,
    replicas,
    restarts,
    soak,
    texts,
    uploads,
)

_MODULES = (
    replicas,
    texts,
    gateways,
    broker,
    database,
    clients,
    overload,
    restarts,
    hosts,
    isolation,
    health,
    loading,
    limits,
    ledger,
    soak,
    uploads,
)
TRIALS = sorted(
    (trial for module in _MODULES for trial in module.TRIALS),
    key=lambda trial: int(trial.promise[1:]),
)
