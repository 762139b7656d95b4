"""The page on streams tells the truth: its programs run, and its topology prints as shown."""

import re
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).parents[2] / "docs" / "streams.md").read_text()


def test_the_programs_of_the_page_run_one_after_the_other() -> None:
    programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(programs) >= 5
    names: dict[str, Any] = {"__name__": "docs"}
    for program in programs:
        exec(compile(program, "docs/streams.md", "exec"), names)


def test_the_first_topology_prints_as_the_page_shows() -> None:
    program = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    shown = re.search(r"```\n(Topologies:.*?)    \.\.\.\n```", PAGE, re.DOTALL)
    assert program is not None
    assert shown is not None
    names: dict[str, Any] = {}
    exec(program[1], names)
    assert str(names["topology"]).startswith(shown[1])
