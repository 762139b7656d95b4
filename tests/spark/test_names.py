"""What `import ottla.spark` offers by name."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("name", ["session", "register", "to_topic", "OttlaDataSource"])
def test_a_name_stands_for_the_same_thing_every_time(name: str) -> None:
    pytest.importorskip("pyspark")
    import ottla.spark

    first = getattr(ottla.spark, name)
    assert callable(first)
    assert getattr(ottla.spark, name) is first
