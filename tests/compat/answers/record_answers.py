"""Records what Apache Kafka answers, for machines without Java.

    python tests/compat/answers/record_answers.py HOST:PORT     writes recorded.json here

The broker needs group.initial.rebalance.delay.ms=0; everything else may be as it comes.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from compat.answers.scenarios import names, run

RECORDED = Path(__file__).parent / "recorded.json"


def main(bootstrap: str) -> None:
    lines = []
    for name, version in names(bootstrap):
        answers = json.dumps(run(bootstrap, name, version), separators=(",", ":"))
        lines.append(f'"{name} {version}":{answers}')
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1])
