"""The database is out of reach: what runs goes on, who was known is served."""

import asyncio
from pathlib import Path

from tests.chaos.lab import Lab, open_lab
from tests.chaos.tally import Tally
from tests.chaos.traffic import ask, is_right, make_body, make_prompt
from tests.chaos.trial import Size, Trial
from tests.gateways import GatewayHome

ANSWER_SECONDS = 5.0
NUM_STREAMS = 8
LONG, SHORT = 800, 20
KEYS_PROGRAM = """
import django
django.setup()
from django.contrib.auth.models import User
from llamero.accounts.services import issue_api_key
user = User.objects.get()
for number in range({count}):
    print(issue_api_key(user=user, name=f"stranger {{number}}").secret_text)
"""


async def lose_database(tally: Tally, size: Size) -> None:
    """The database cannot be opened for some seconds."""
    async with open_lab() as lab:
        ports = [gateway.port for gateway in lab.start_gateways(2)]
        assert lab.home is not None
        known, folder = lab.home.key(), lab.home.folder
        # One for each round: who was served since the last is known.
        strangers = await asyncio.to_thread(_make_keys, lab.home, size.rounds)
        for number, unknown in enumerate(strangers):
            prompts = [make_prompt(100 * number + one) for one in range(NUM_STREAMS)]
            asked = [
                asyncio.create_task(ask(ports[0], known, make_body(prompt, LONG)))
                for prompt in prompts
            ]
            await asyncio.sleep(1.5)
            _hide(folder)
            tally.strike(sum(not one.done() for one in asked))
            # What the gateway has seen lately outlives a second, after which it would look again.
            await asyncio.sleep(1.5)
            await _judge_known(lab, ports[0], known, tally)
            answer = await ask(ports[1], unknown, make_body(prompts[0], SHORT))
            is_told = answer.status == 503 and answer.retry_after > 0
            tally.judge(
                is_told and answer.seconds < ANSWER_SECONDS,
                f"{answer.status} {answer.code} after {answer.seconds:.1f} s for one not yet known",
            )
            for prompt, one in zip(prompts, await asyncio.gather(*asked), strict=True):
                is_kept = is_right(one, prompt, LONG)
                tally.judge(is_kept, f"a stream ended with {one.code or one.status}")
            _show(folder)
            for port, key in ((ports[0], known), (ports[1], unknown)):
                back = await ask(port, key, make_body(prompts[0], SHORT))
                tally.judge(is_right(back, prompts[0], SHORT), f"{back.status} when it was back")
            await asyncio.sleep(1.5)


def _make_keys(home: GatewayHome, count: int) -> list[str]:
    return home.run_program(KEYS_PROGRAM.format(count=count)).split()


async def _judge_known(lab: Lab, port: int, key: str, tally: Tally) -> None:
    for number in range(4):
        prompt = make_prompt(500 + number)
        answer = await ask(port, key, make_body(prompt, SHORT))
        is_served = is_right(answer, prompt, SHORT) and answer.seconds < ANSWER_SECONDS
        tally.judge(is_served, f"a known key got {answer.code or answer.status}")


def _hide(folder: Path) -> None:
    """Put the database away; a folder in its place has nobody make an empty one."""
    for path in _files(folder):
        path.rename(path.with_name(f"away-{path.name}"))
    (folder / "llamero.sqlite3").mkdir()


def _show(folder: Path) -> None:
    (folder / "llamero.sqlite3").rmdir()
    for path in folder.glob("away-*"):
        path.rename(path.with_name(path.name.removeprefix("away-")))


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.startswith("llamero.sqlite3")]


TRIALS = (Trial("P5", "the database is gone, the data plane goes on", lose_database, 2),)
