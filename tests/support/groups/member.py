"""The program of a member process: `python -m support.groups.member OPTIONS`, options as JSON.

Ends in good order on SIGTERM: partitions given up, group left, ENDED written down.
"""

import importlib
import sys

import msgspec

from support.ending import Ending
from support.groups.journal import ENDED, FAILED, STARTED
from support.groups.membership import MemberOptions, Membership

MEMBERS = {
    "confluent": ("confluent_member", "ConfluentMember"),
    "kafka_python": ("kafka_python_member", "KafkaPythonMember"),
    "aiokafka": ("aio_member", "AioMember"),
}


def main(arguments: list[str]) -> int:
    options = msgspec.json.decode(arguments[0], type=MemberOptions)
    module, name = MEMBERS[options.library]
    ending = Ending()
    membership = Membership(options)
    member = getattr(importlib.import_module(f"support.groups.{module}"), name)
    membership.note(STARTED)
    try:
        member(options, membership).run(ending)
    except Exception as error:
        membership.note(FAILED, f"{type(error).__name__}: {error}")
        return 1
    membership.note(ENDED)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
