"""`ottla` as if it were an older version: run as a program, it knows the first level only.

It neither offers nor accepts newer versions of the APIs that later levels use, and neither writes
nor reads newer records in its coordinators' topics. Whatever it meets that it does not know it says
on standard error, with `UNKNOWN` in the line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

UNKNOWN = "an older broker met something it does not know"
OLDER_LEVEL = "3.8"
NEWEST_VERSIONS = {
    "PRODUCE": 11,
    "FETCH": 16,
    "ADD_PARTITIONS_TO_TXN": 4,
    "ADD_OFFSETS_TO_TXN": 3,
    "END_TXN": 4,
    "WRITE_TXN_MARKERS": 1,
    "TXN_OFFSET_COMMIT": 4,
    "CREATE_TOPICS": 6,
}
OFFSET_VALUE_VERSIONS = range(4)
CLASSIC_RECORD_TYPES = range(3)


def pretend() -> None:
    """Takes away what is newer, before anything else of the package is imported."""
    protocol_level = _load_alone("ottla.settings.protocol_level")
    oldest = protocol_level.LEVELS[0]
    assert oldest.name == OLDER_LEVEL
    set_attribute(protocol_level, "LEVELS", (oldest,))
    set_attribute(protocol_level, "NEWEST", oldest)
    _limit_versions()
    _limit_records()
    _tell_of_what_is_unknown()


def _load_alone(name: str) -> Any:
    """A module without its package, which would use what it says at once."""
    import ottla

    assert "ottla.settings" not in sys.modules, "too late to pretend"
    path = Path(ottla.__file__).parent.joinpath(*name.split(".")[1:]).with_suffix(".py")
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def set_attribute(owner: object, name: str, value: object) -> None:
    """A constant of the package, changed."""
    assert hasattr(owner, name), f"{name} is not there any more"
    setattr(owner, name, value)


def _limit_versions() -> None:
    from ottla.protocol.api import Api
    from ottla.protocol.message import VersionRange

    every: Any = Api.versions
    known = every.fget

    def versions(api: Api) -> VersionRange:
        found: VersionRange = known(api)
        newest = NEWEST_VERSIONS.get(api.key.name, found.last)
        return VersionRange(found.first, min(found.last, newest))

    set_attribute(Api, "versions", property(versions))


def _limit_records() -> None:
    from ottla.coordination.group import records as group_records
    from ottla.coordination.transaction import records as transaction_records

    set_attribute(transaction_records, "VALUE_VERSION_MAX", 0)
    committed_offset = 1
    group_records._VALUE_VERSIONS[committed_offset] = OFFSET_VALUE_VERSIONS
    decode = group_records.decode_record

    def decode_record(key: bytes, value: bytes | None) -> Any:
        record_type = int.from_bytes(key[:2], "big")
        if record_type not in CLASSIC_RECORD_TYPES:
            print(f"{UNKNOWN}: a record of type {record_type}", file=sys.stderr, flush=True)
        return decode(key, value)

    set_attribute(group_records, "decode_record", telling(decode_record))
    of_value = transaction_records.transaction_of
    set_attribute(transaction_records, "transaction_of", telling(of_value))


def _tell_of_what_is_unknown() -> None:
    from ottla.broker.dispatch import Dispatch

    set_attribute(Dispatch, "_route", telling(Dispatch._route))


def telling(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, saying what it does not know."""
    from ottla.errors import ProtocolError

    def told(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except ProtocolError as error:
            print(f"{UNKNOWN}: {error}", file=sys.stderr, flush=True)
            raise

    return told


if __name__ == "__main__":
    sys.path.pop(0)  # this directory: its modules are not meant to be found by their bare names
    pretend()
    from ottla.cli.main import main

    main()
