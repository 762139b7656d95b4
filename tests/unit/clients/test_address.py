"""Addresses as people write them."""

import pytest

from ottla.clients.address import Address, parse_address, parse_addresses
from ottla.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:9092", Address("localhost", 9092)),
        (" broker.example.com ", Address("broker.example.com", 9092)),
        ("PLAINTEXT://10.0.0.1:19092", Address("10.0.0.1", 19092)),
        ("[::1]:9093", Address("::1", 9093)),
        ("[fe80::1]", Address("fe80::1", 9092)),
        ("host:0", Address("host", 0)),
    ],
)
def test_addresses_are_read_as_people_write_them(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", ":9092", "host:port", "host:99999", "::1", "[::1", "host:-1"])
def test_a_bad_address_is_refused_with_the_fix(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_address(text)
    assert "write " in str(caught.value)


@pytest.mark.parametrize("address", [Address("h", 1), Address("::1", 9092)])
def test_an_address_reads_back_as_it_prints(address: Address) -> None:
    assert parse_address(str(address)) == address


def test_several_addresses_are_separated_by_commas_or_spaces_and_taken_once() -> None:
    assert parse_addresses(["a:1,b:2", "a:1 c"]) == (
        Address("a", 1),
        Address("b", 2),
        Address("c", 9092),
    )


def test_no_address_at_all_is_an_error() -> None:
    with pytest.raises(ConfigError):
        parse_addresses([" , "])
