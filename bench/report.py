"""Result lines in, a table of ratios and verdicts out. Knows nothing of how figures are made."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec
from scenarios import AtLeast, AtMost, Scenario, Times

OTHER_SHARE_MAX = 0.125
SKIPPED = "skipped"


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """One measurement of one broker; `error` says why there are no figures."""

    scenario: str
    broker: str
    figures: dict[str, float] = {}
    error: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    scenario: str
    figure: str
    ours: str
    theirs: str
    ratio: str
    bar: str
    verdict: str

    def is_bad(self) -> bool:
        """Whether a bar was missed or a measurement failed."""
        return self.verdict.startswith("FAIL") or " failed: " in self.verdict


@dataclass(frozen=True, slots=True)
class Sides:
    """The medians of both brokers in one scenario."""

    ours: dict[str, float]
    theirs: dict[str, float]

    def ratio(self, figure: str) -> float | None:
        """Ours over theirs, where both are known."""
        if self.ours.get(figure) is None or not self.theirs.get(figure):
            return None
        return self.ours[figure] / self.theirs[figure]


def rows(scenarios: Iterable[Scenario], results: list[Result], our_name: str) -> Iterator[Row]:
    """A row for each bar and each shown figure of the scenarios that were run."""
    for scenario in scenarios:
        own = [result for result in results if result.scenario == scenario.name]
        if not own:
            continue
        ours = [result for result in own if result.broker == our_name]
        theirs = [result for result in own if result.broker != our_name]
        for result in own:
            if result.error:
                said = " ".join(result.error.split())[:120]
                yield Row(scenario.name, "", "", "", "", "", f"{result.broker} {said}")
        sides = Sides(_medians(ours), _medians(theirs))
        note = " (disturbed)" if _is_disturbed(own) else ""
        for bar in scenario.bars:
            yield _bar_row(scenario.name, bar, sides, note)
        judged = {bar.figure for bar in scenario.bars}
        for figure in (figure for figure in scenario.shown if figure not in judged):
            yield _row(scenario.name, figure, sides, "", "")


def _medians(results: list[Result]) -> dict[str, float]:
    values: dict[str, list[float]] = defaultdict(list)
    for result in results:
        for figure, value in result.figures.items():
            values[figure].append(value)
    return {figure: statistics.median(found) for figure, found in values.items()}


def _is_disturbed(results: list[Result]) -> bool:
    return any(result.figures.get("other_share", 0.0) > OTHER_SHARE_MAX for result in results)


def _bar_row(name: str, bar: Times | AtMost | AtLeast, sides: Sides, note: str) -> Row:
    if isinstance(bar, AtMost | AtLeast):
        sign = "≤" if isinstance(bar, AtMost) else "≥"
        measured, text = sides.ours.get(bar.figure), f"{sign} {bar.limit:g}"
    else:
        measured = sides.ratio(bar.figure)
        text = f"≤ {bar.at_most:g} ×" if bar.at_least is None else f"≥ {bar.at_least:g} ×"
    if measured is None:
        return _row(name, bar.figure, sides, text, "not measured" + note)
    return _row(name, bar.figure, sides, text, ("pass" if bar.is_met(measured) else "FAIL") + note)


def _row(name: str, figure: str, sides: Sides, bar: str, verdict: str) -> Row:
    ratio = sides.ratio(figure)
    return Row(
        scenario=name,
        figure=figure,
        ours=_number(sides.ours.get(figure)),
        theirs=_number(sides.theirs.get(figure)),
        ratio="" if ratio is None else f"{ratio:.2f} ×",
        bar=bar,
        verdict=verdict,
    )


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(lines: list[Row], our_name: str) -> str:
    """The rows as a Markdown table that also reads well as it is."""
    headings = Row("measurement", "figure", our_name, "other", "ratio", "bar", "verdict")
    cells = [[getattr(row, name) for name in Row.__slots__] for row in (headings, *lines)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    written = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    written.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(written)


def verdict(lines: list[Row]) -> str:
    """One sentence on how many bars were met."""
    judged = [row.verdict.split()[0] for row in lines if row.bar]
    met, missed = judged.count("pass"), judged.count("FAIL")
    return f"bars: {met} met, {missed} missed, {len(judged) - met - missed} not measured"
