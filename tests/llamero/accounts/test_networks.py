"""Networks: how they are written, and who is in them."""

import pytest

from llamero.accounts.networks import is_within, read_networks
from llamero.accounts.wrong_keys import place_of


@pytest.mark.parametrize(
    ("address", "is_in"),
    [
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("2001:db8::1", True),
        ("2001:db8::1%eth0", True),
        ("192.0.2.1", False),
        ("2001:db9::1", False),
        ("", False),
        ("unix", False),
        ("10.1.2.3, 10.0.0.1", False),
    ],
)
def test_an_address_is_in_one_of_them_or_not(address: str, is_in: bool) -> None:
    networks = read_networks(["10.0.0.0/8", " 2001:db8::/32 ", "192.0.2.7"])
    assert is_within(address, networks) is is_in


@pytest.mark.parametrize("text", ["", "10", "example.org", "10.0.0.0/33", "10.0.0.1/8", "0/0"])
def test_what_is_none_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no address|has bits beyond"):
        read_networks([text])


def test_a_customers_ipv6_addresses_are_one_place() -> None:
    assert place_of("2001:db8::1") == place_of("2001:db8::ffff:1")
    assert place_of("2001:db8::1") != place_of("2001:db8:0:1::1")
    assert place_of("10.0.0.1") == place_of("::ffff:10.0.0.1")
    assert place_of("10.0.0.1") != place_of("10.0.0.2")
    assert len(place_of("no address")) == 4
