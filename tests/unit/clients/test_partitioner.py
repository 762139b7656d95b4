"""Records of one key must go where every other client sends them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as murmur2_of_kafka_python

from ottla.clients.partitioner import murmur2, partition_for_key

KNOWN_FROM_JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "signed"), KNOWN_FROM_JAVA.items())
def test_the_hash_is_that_of_the_java_client(key: bytes, signed: int) -> None:
    assert murmur2(key) == signed & 0xFFFFFFFF


@given(st.binary(max_size=70))
def test_the_hash_is_that_of_kafka_python(key: bytes) -> None:
    assert murmur2(key) == murmur2_of_kafka_python(key) & 0xFFFFFFFF


@given(st.binary(max_size=30), st.integers(1, 1000))
def test_a_key_always_goes_to_one_existing_partition(key: bytes, count: int) -> None:
    assert 0 <= partition_for_key(key, count) < count
