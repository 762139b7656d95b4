"""Help texts and the documentation page of the settings, derived from their declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ottla.settings.broker import TOPIC_DEFAULTS, broker_declarations
from ottla.settings.declare import INT_MAX, LONG_MAX, Declared, Kind, allowed, render
from ottla.settings.group import GROUP_DEFAULTS, group_declarations
from ottla.settings.topic import topic_declarations

_HEAD: Final = """\
# Settings

This page is written by `tools/settings_docs.py` from the declarations in `ottla.settings`.

Settings have the names they have in Kafka. A broker reads them from a `.properties` or `.toml` file
and from `--set name=value`; a topic's are given when it is created and changed at any time after.
Names of Kafka's that mean nothing here are accepted with a warning, unknown names are refused.
"""


def help_text(declared: Declared) -> str:
    """Some lines for the terminal: what a setting does, what it takes and its default."""
    lines = [declared.name, f"  {declared.doc}", f"  takes    {allowed(declared.setting)}"]
    lines.append(f"  default  {_default(declared)}")
    return "\n".join(lines)


def markdown() -> str:
    """The whole page."""
    topic = topic_declarations().values()
    broker = broker_declarations().values()
    parts = [
        _HEAD,
        "## Topic settings\n\nAll of them may change while the broker runs.\n",
        _table(topic, last="Broker's default", cell=_given_by),
        "\n## Broker settings\n",
        _table(broker, last="Live", cell=lambda each: "yes" if each.setting.is_live else ""),
        "\n## Group settings\n\nA group of the consumer protocol may have these of its own.\n",
        _table(
            group_declarations().values(),
            last="Broker's default",
            cell=lambda each: f"`{GROUP_DEFAULTS[each.name]}`",
        ),
    ]
    return "\n".join(parts)


def _table(declared: Iterable[Declared], *, last: str, cell: Callable[[Declared], str]) -> str:
    rows = [f"| Name | What it does | Takes | Default | {last} |", "|---|---|---|---|---|"]
    for each in declared:
        takes = allowed(each.setting)
        rows.append(f"| `{each.name}` | {each.doc} | {takes} | {_default(each)} | {cell(each)} |")
    return "\n".join(rows) + "\n"


def _given_by(declared: Declared) -> str:
    return ", ".join(f"`{each.name}`" for each in TOPIC_DEFAULTS.get(declared.attribute, ()))


def _default(declared: Declared) -> str:
    default = declared.default
    if default is None:
        return "(unset)"
    limits = {Kind.INT: INT_MAX, Kind.LONG: LONG_MAX}
    if default == limits.get(declared.setting.kind):
        return "no limit"
    return render(default) or "(empty)"
