"""The ways the broker shares a group's partitions among its members."""

from __future__ import annotations

from typing import Final

from ottla.coordination.group.assignors.range import assign_ranges
from ottla.coordination.group.assignors.spec import Assignor
from ottla.coordination.group.assignors.uniform import assign_uniformly

ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}
"""Every assignor by the name clients and settings know it by."""
