"""Who shares computed prefixes with whom is the deployment's choice, never the client's."""

import dataclasses

import msgspec
import pytest
from django.contrib.auth.models import User

from llamero.accounts.selectors import Caller
from llamero.api.sharing import salt_of
from models_registry.selectors import ServedModel
from tests.llamero.api.asgi_client import post
from tests.llamero.api.fakes import FakeDispatcher

ADA, BOB = User(pk=1, username="ada"), User(pk=2, username="bob")
FIRST, SECOND = Caller(ADA, 1, "key:1"), Caller(ADA, 2, "key:2")
OTHER, SIGNED_IN = Caller(BOB, 3, "key:3"), Caller(ADA, None, "user:1")


@pytest.mark.parametrize(
    ("sharing", "num_salts"), [("key", 4), ("owner", 2), ("all", 1), ("", 4), ("Key:1", 4)]
)
def test_salts_are_as_wide_as_the_deployment_says(sharing: str, num_salts: int) -> None:
    salts = [salt_of(caller, sharing) for caller in (FIRST, SECOND, OTHER, SIGNED_IN)]
    assert len(set(salts)) == num_salts


async def test_a_client_cannot_choose_its_salt(
    dispatcher: FakeDispatcher, served: list[ServedModel]
) -> None:
    body = {"model": "smol", "messages": [{"role": "user", "content": "hi"}]}
    wishes = {"salt": "key:2", "cache_salt": "key:2", "user": "key:2", "prompt_cache_key": "key:2"}
    await post("/v1/chat/completions", body | wishes)
    assert {job.salt for job in dispatcher.jobs} <= {"key:1"}


async def test_the_profile_of_the_deployment_decides(
    dispatcher: FakeDispatcher, served: list[ServedModel]
) -> None:
    at = next(at for at, model in enumerate(served) if model.id == "smol")
    profile = msgspec.structs.replace(served[at].profile, prefix_sharing="owner")
    served[at] = dataclasses.replace(served[at], profile=profile)
    await post("/v1/completions", {"model": "smol", "prompt": "hi"})
    (job,) = dispatcher.jobs
    assert (job.owner, job.salt) == ("key:1", "user:1")
