"""What tests of sending files share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from unit.net.served import DataFile


@pytest.fixture
def data_file(tmp_path: Path) -> Iterator[DataFile]:
    file = DataFile(tmp_path / "segment", 5 << 20)
    yield file
    file.close()
