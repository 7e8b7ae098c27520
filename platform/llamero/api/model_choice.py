"""Which served model a request means, whether its caller may use it, and who answers for it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from inference.protocol.replicas import ModelKind
from llamero.accounts.selectors import Caller
from llamero.errors import InvalidValue, LlameroError
from llamero.expiring_cache import ExpiringCache
from models_registry.routing import choose_route
from models_registry.selectors import ServedModel, find_served_model, list_served_models

GENERATIVE = frozenset({ModelKind.CHAT, ModelKind.COMPLETION})
EMBEDDING = frozenset({ModelKind.EMBEDDING})
RERANK = frozenset({ModelKind.RERANK})
ANY_KIND = frozenset(ModelKind)
_KIND_WORDS = {
    ModelKind.CHAT: "a chat model",
    ModelKind.COMPLETION: "a completion model",
    ModelKind.EMBEDDING: "an embedding model",
    ModelKind.RERANK: "a reranking model",
}

DEPLOYMENT_HEADER = "x-llamero-deployment"
VERSION_HEADER = "x-llamero-version"
STAND_IN_HEADER = "x-llamero-stands-in-for"

recent_models: ExpiringCache[ServedModel] = ExpiringCache(lifetime_seconds=1.0)
recent_lists: ExpiringCache[list[ServedModel]] = ExpiringCache(lifetime_seconds=1.0)


def first_named(*names: object) -> object:
    """Give the first of several places for a name that holds one; null and "" hold none."""
    return next((name for name in names if name is not None and name != ""), None)


def named_model(path: Mapping[str, Any], *others: object) -> object:
    """Give the model's name: below ``/m/<model>/`` that one, whatever else a request says.

    Who is given such an address may have no say in the ``model`` its client sends.
    """
    return first_named(path.get("model"), *others)


def choose_model(
    name: object, caller: Caller, kinds: frozenset[ModelKind], conversation: str = ""
) -> ServedModel:
    """Find the model that a request names, spelled exactly so, with the deployment to answer it.

    What is alike in ``conversation``, or without one in its caller, meets the same deployment.
    """
    served = look_up_model(name, caller)
    if not _able(served, kinds):
        raise InvalidValue(
            "model",
            f"{served.id} is {_KIND_WORDS[served.kind]}; this address is for {_describe(kinds)}. "
            "GET /v1/models tells the kind of each.",
        )
    return route(served, caller, kinds, conversation)


def look_up_model(name: object, caller: Caller) -> ServedModel:
    """Find the model that a caller names, whatever its kind and whoever answers for it."""
    if first_named(name) is None:
        raise InvalidValue("model", "model is missing.", "missing_required_parameter")
    if not isinstance(name, str):
        raise InvalidValue("model", "model must be a string.")
    served = recent_models.recall(name, lambda: find_served_model(name))
    if served is None or not caller.may_use(served.model_pk):
        raise no_such_model(name)
    return served


def route(
    served: ServedModel, caller: Caller, kinds: frozenset[ModelKind], conversation: str = ""
) -> ServedModel:
    """Choose the deployment that answers: one of the model's own, else one of its fallback's.

    Where none can it stays with the model, whose own state is what the client should hear.
    """
    asker = f"{caller.owner}\n{conversation}" if conversation else caller.owner
    chosen = choose_route(_able(served, kinds), asker)
    if chosen is not None or not served.fallback:
        return chosen or served
    other = recent_models.recall(served.fallback, lambda: find_served_model(served.fallback))
    if other is None or not caller.may_use(other.model_pk):
        return served
    chosen = choose_route(_able(other, kinds), asker)
    return served if chosen is None else replace(chosen, stands_in_for=served.id)


def describe_route(served: ServedModel) -> dict[str, str]:
    """Give the headers that tell who answers."""
    headers = {DEPLOYMENT_HEADER: served.deployment}
    if served.version:
        headers[VERSION_HEADER] = str(served.version)
    if served.stands_in_for:
        headers[STAND_IN_HEADER] = served.stands_in_for
    return headers


def _able(served: ServedModel, kinds: frozenset[ModelKind]) -> list[ServedModel]:
    """Give the deployments of a model that answer this kind of request."""
    return [one for one in served.routes or (served,) if _answers_as(one, kinds)]


def choose_default_model(
    caller: Caller, kinds: frozenset[ModelKind], conversation: str = ""
) -> ServedModel:
    """Take the first model of a fitting kind that generates, or else the first that fits."""
    fitting = [served for served in list_usable_models(caller) if _able(served, kinds)]
    if fitting:
        best = min(fitting, key=lambda one: (one.kind not in kinds, one.kind not in GENERATIVE))
        return route(best, caller, kinds, conversation)
    raise LlameroError(
        404,
        "model_not_found",
        f"This address is for {_describe(kinds)}, and none is served that this key may use. "
        "GET /v1/models lists those that are, with the kind of each.",
        param="model",
    )


def list_usable_models(caller: Caller) -> list[ServedModel]:
    """List the served models this caller may use."""
    return [served for served in list_all_models() if caller.may_use(served.model_pk)]


def list_all_models() -> list[ServedModel]:
    """List every served model, as of a second ago at most."""
    return recent_lists.recall("", list_served_models) or []


def no_such_model(name: str) -> LlameroError:
    """Say that there is no such model, or none for this caller: both sound alike."""
    return LlameroError(
        404, "model_not_found", f"The model {name!r:.140} does not exist.", param="model"
    )


def _describe(kinds: frozenset[ModelKind]) -> str:
    return " or ".join(_KIND_WORDS[kind] for kind in sorted(kinds))


def _answers_as(served: ServedModel, kinds: frozenset[ModelKind]) -> bool:
    """Whether a model is of these kinds; one that generates may serve embeddings beside."""
    if kinds == EMBEDDING and served.kind.is_generative:
        return served.profile.serves_embeddings
    return served.kind in kinds
