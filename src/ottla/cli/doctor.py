"""`ottla doctor`: find out why a broker cannot be used, and how to fix it."""

from __future__ import annotations

import asyncio
from typing import Final

import click

from ottla.cli.checkup import Finding, State, examine
from ottla.cli.connection_options import bootstrap, broker_options, json_option, timeout_s
from ottla.cli.exit_code import ExitCode
from ottla.cli.message import paint, say
from ottla.cli.output import print_json
from ottla.cli.session import client_options
from ottla.clients.address import Address, parse_addresses

MARKS: Final = {
    State.GOOD: ("✓", "green"),
    State.WARNING: ("!", "yellow"),
    State.BAD: ("✗", "red"),
}


@click.command()
@click.argument("address", required=False)
@json_option
@broker_options
def doctor(address: str | None, as_json: bool) -> int:
    """Look at the broker at ADDRESS from the outside in, and say what is wrong and the fix.

    Is the name known, does the port answer, is it Kafka's protocol, are the addresses the
    brokers advertise reachable from here, is there a controller, is every partition led, do the
    disks have room, is some clock wrong, how fast do the brokers answer and does a quota hold
    them back? Exit code 0 means that nothing bad was found.
    """
    places = parse_addresses([address or bootstrap()])
    findings = asyncio.run(_examine_all(places, prints=not as_json))
    if as_json:
        print_json([_finding_json(finding) for finding in findings])
    elif all(finding.state is State.GOOD for finding in findings):
        say("All is well.")
    if any(finding.is_unreachable for finding in findings):
        return ExitCode.UNREACHABLE
    is_bad = any(finding.state is State.BAD for finding in findings)
    return ExitCode.FAILED if is_bad else ExitCode.OK


async def _examine_all(places: tuple[Address, ...], *, prints: bool) -> list[Finding]:
    findings: list[Finding] = []
    for place in places:
        async for finding in examine(place, client_options(min(timeout_s(), 10.0))):
            findings.append(finding)
            if prints:
                _print(finding)
    return findings


def _print(finding: Finding) -> None:
    mark, color = MARKS[finding.state]
    say(f"{paint(mark, color, bold=True)} {finding.about}: {finding.detail}")
    if finding.fix:
        say(f"  {paint('fix:', 'green', bold=True)} {finding.fix}")


def _finding_json(finding: Finding) -> dict[str, object]:
    return {
        "state": finding.state.value,
        "about": finding.about,
        "detail": finding.detail,
        "fix": finding.fix,
    }
