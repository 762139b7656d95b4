"""Errors of ours reach the person at the driver as one sentence, without a Python traceback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.errors import OttlaError


@contextmanager
def plainly() -> Iterator[None]:
    """For what the driver calls: bad options, a topic that is not there, a cluster out of reach."""
    try:
        yield
    except OttlaError:
        # Spark formats the exception in this process, which ends with it: it is a worker of
        # Spark's that runs the driver's half of a data source.
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise
