"""All top-level messages the project declares, found in the files of `ottla.protocol.messages`."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from ottla.protocol import messages
from ottla.protocol.message import Message, Schema


def every_message() -> dict[str, type[Message]]:
    """Each top-level message class by its name."""
    found: dict[str, type[Message]] = {}
    for module_info in pkgutil.iter_modules(messages.__path__):
        module = import_module(f"{messages.__name__}.{module_info.name}")
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, Message) and is_top_level(value):
                assert name not in found, f"{name} is declared twice"
                found[name] = value
    return found


def is_top_level(message_class: type[Message]) -> bool:
    return isinstance(getattr(message_class, "schema", None), Schema)


def every_version() -> list[tuple[type[Message], int]]:
    """Each (message, version) there is."""
    return [
        (message_class, version)
        for message_class in every_message().values()
        for version in message_class.schema.range().numbers()  # type: ignore[attr-defined]
    ]
