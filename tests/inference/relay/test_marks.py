"""Prompts that begin alike have the same first marks; few marks tell most of what they share."""

import random
from itertools import pairwise

from inference.protocol.jobs import EmbeddingJob
from inference.relay.marks import mark_lengths, prefix_marks
from tests.inference.relay.fakes import make_job

LONG = tuple(random.Random(1).randrange(50_000) for _ in range(5000))


def test_a_longer_prompt_has_the_marks_of_its_beginning():
    marks = prefix_marks(make_job(prompt_tokens=LONG))
    assert prefix_marks(make_job(prompt_tokens=LONG[:1000])) == marks[: len(mark_lengths(1000))]
    other = prefix_marks(make_job(prompt_tokens=(*LONG[:1000], 7, *LONG[1001:])))
    shared = [mark for mark, same in zip(marks, other, strict=True) if mark == same]
    assert shared == list(marks[: len(mark_lengths(1000))])


def test_marks_are_few_and_close():
    assert mark_lengths(15) == ()
    assert mark_lengths(131_072)[:3] == (16, 32, 48)
    assert len(mark_lengths(131_072)) < 100
    lengths = (0, *mark_lengths(131_072))
    for shorter, longer in pairwise(lengths):
        assert longer - shorter <= max(16, shorter / 8)


def test_marks_belong_to_a_scope():
    job = make_job(prompt_tokens=LONG[:64])
    scopes = [
        job,
        make_job(prompt_tokens=LONG[:64], salt="other"),
        make_job(prompt_tokens=LONG[:64], loras=((0, 1.0),)),
        make_job(prompt_tokens=LONG[:64], deployment="other"),
    ]
    assert len({prefix_marks(one)[0] for one in scopes}) == len(scopes)


def test_what_leaves_nothing_behind_has_no_marks():
    assert prefix_marks(make_job(prompt_tokens=LONG, cache_prompt=False)) == ()
    vectors = EmbeddingJob(
        id="v", deployment="d", owner="o", gateway="g", inputs=(LONG,), deadline=9.0
    )
    assert prefix_marks(vectors) == ()
