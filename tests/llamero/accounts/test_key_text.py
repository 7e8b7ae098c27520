"""The text of keys, and what proves one."""

from typing import Any

import pytest

from llamero.accounts.key_text import (
    is_sealed_as,
    make_key_text,
    newest_pepper,
    read_prefix,
    seal,
)
from llamero.accounts.peppers import read_peppers


def test_a_key_has_a_public_and_a_secret_part() -> None:
    text = make_key_text()
    start, public, secret = text.split("_")
    assert (start, len(public)) == ("llm", 8)
    assert len(secret) >= 32
    assert read_prefix(text) == public
    assert make_key_text() != text


@pytest.mark.parametrize("text", ["", "llm_", "llm_abcdefgh_short", "x", "llm_ä_" + "a" * 40])
def test_what_is_no_key_has_no_prefix(text: str) -> None:
    assert read_prefix(text) == ""


def test_a_seal_fits_one_key_and_one_pepper(settings: Any) -> None:
    settings.API_KEY_PEPPERS = {1: "one" * 8, 2: "two" * 8}
    text = make_key_text()
    digest = seal(text, 1)
    assert is_sealed_as(text, 1, digest)
    assert not is_sealed_as(text + "x", 1, digest)
    assert not is_sealed_as(text, 2, digest)
    assert not is_sealed_as(text, 3, seal(text, 3))
    assert newest_pepper() == 2


def test_peppers_are_read_by_number() -> None:
    peppers = read_peppers("1:0123456789abcdef, 3:fedcba9876543210", "secret")
    assert peppers == {1: "0123456789abcdef", 3: "fedcba9876543210"}
    assert list(read_peppers("", "secret")) == [1]
    assert read_peppers("", "secret") != read_peppers("", "other")


@pytest.mark.parametrize("text", ["x", "1:short", "a:0123456789abcdef"])
def test_bad_peppers_stop_the_start_without_being_told(text: str) -> None:
    with pytest.raises(ValueError, match="number:secret") as caught:
        read_peppers(text, "secret")
    assert "short" not in str(caught.value)
