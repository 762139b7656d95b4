"""What `import ottla` brings, and what it costs."""

import subprocess
import sys

import pytest

import ottla
import ottla.aio


def test_every_name_has_its_home() -> None:
    for name in ottla._HOMES:
        assert getattr(ottla, name) is not None
        assert name in dir(ottla)


def test_importing_ottla_imports_no_client() -> None:
    program = "import sys, ottla; print(*(name for name in sys.modules if 'ottla.' in name))"

    printed = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True)

    assert printed.stdout.split() == [b"ottla.compiled"]


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Producr"):
        _ = ottla.Producr


def test_both_faces_have_the_same_calls() -> None:
    lonely = {"start"}  # a blocking client is open from the start
    for name in ("Producer", "Consumer", "Admin"):
        blocking, asynchronous = getattr(ottla, name), getattr(ottla.aio, name)
        ours = {each for each in vars(asynchronous) if not each.startswith("_")} - lonely
        theirs = {each for each in vars(blocking) if not each.startswith("_")} - {"disown"}
        assert ours - {"send_and_wait"} == theirs
