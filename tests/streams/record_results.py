"""Records what Kafka Streams gives for random records, for machines without Java.

    python tests/streams/record_results.py        writes recorded.json beside this file

Needs what java_streams.py needs. Only a digest of each result is kept; when one differs,
test_java_agrees.py shows the records.
"""

import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from streams import java_streams
from streams.running import random_steps
from streams.topologies import ALL as TOPOLOGIES

RECORDED = Path(__file__).parent / "recorded.json"
SEEDS = 6


def digest(result: dict[str, Any]) -> str:
    """A short name of a result; topics without records do not count."""
    kept = {topic: records for topic, records in result.items() if records}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:16]


def main() -> None:
    cases = [(name, seed) for name in sorted(TOPOLOGIES) for seed in range(SEEDS)]
    with tempfile.TemporaryDirectory() as folder:
        steps = [(name, random_steps(name, seed)) for name, seed in cases]
        results = java_streams.run_cases(steps, Path(folder))
    digests: dict[str, list[str]] = {name: [] for name in sorted(TOPOLOGIES)}
    for (name, _), result in zip(cases, results, strict=True):
        digests[name].append(digest(result))
    RECORDED.write_text(json.dumps(digests, indent=1) + "\n")


if __name__ == "__main__":
    main()
