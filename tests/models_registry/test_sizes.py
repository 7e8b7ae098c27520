"""Byte counts read the same in Python and in templates, in units that say what they are."""

import pytest
from django.template import Context, Template

from models_registry.sizes import filesizeformat


@pytest.mark.parametrize(
    ("num_bytes", "words"),
    [
        (5, "5\xa0bytes"),
        (98_400_000, "93.8\xa0MiB"),
        (3 << 30, "3.0\xa0GiB"),
        (1 << 10, "1.0\xa0KiB"),
    ],
)
def test_sizes_have_true_units(num_bytes: int, words: str) -> None:
    assert filesizeformat(num_bytes) == words
    assert Template("{{ size|filesizeformat }}").render(Context({"size": num_bytes})) == words
