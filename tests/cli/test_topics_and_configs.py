"""`ottla topics`, `ottla configs`, `ottla cluster` and `ottla records` against a real broker."""

import json
import subprocess
import sys


def test_a_topic_is_created_listed_described_altered_and_deleted(ottla, new_name) -> None:
    name = new_name()
    created = ottla("topics", "create", name, "-p", "2", "-c", "retention.ms=123456")
    assert (created.code, created.err) == (0, "")
    assert f"Created topic {name} with 2 partitions" in created.out

    assert name in [line.split("\t")[0] for line in ottla("topics", "list").lines]
    assert ottla("topics", "alter", name, "-p", "5", "-u", "retention.ms").code == 0

    (described,) = json.loads(ottla("topics", "describe", name, "--json").out)
    assert [row["partition"] for row in described["partitions"]] == [0, 1, 2, 3, 4]
    assert described["configs"] == {}

    assert ottla("topics", "delete", name, "--yes").out == f"Deleted topic {name}.\n"
    gone = ottla("topics", "describe", name)
    assert gone.code == 1
    assert f"there is no topic '{name}'" in gone.err


def test_what_exists_or_does_not_is_an_error_unless_allowed(ottla, topic: str) -> None:
    again = ottla("topics", "create", topic)
    assert (again.code, "--if-not-exists" in again.err) == (1, True)
    assert ottla("topics", "create", topic, "--if-not-exists").code == 0
    assert ottla("topics", "delete", "never-there", "-y").code == 1
    assert ottla("topics", "delete", "never-there", "-y", "--if-exists").code == 0


def test_what_the_broker_keeps_for_itself_is_not_deleted(ottla) -> None:
    kept = ottla("topics", "delete", "__transaction_state", "-y", "--if-exists")
    assert (kept.code, "cannot be deleted" in kept.err) == (2, True)


def test_a_command_whose_streams_are_closed_ends_like_any_other(bootstrap: str) -> None:
    command = f"{sys.executable} -m ottla -b {bootstrap} topics list"
    closed = subprocess.run(["sh", "-c", f"{command} <&- >&- 2>&-"], check=False, timeout=60)
    assert closed.returncode == 0
    unread = f"{sys.executable} -m ottla -b {bootstrap} produce never-there <&-"
    told = subprocess.run(
        ["sh", "-c", unread], check=False, timeout=60, capture_output=True, text=True
    )
    assert (told.returncode, "never-there" in told.stderr) == (1, True), told


def test_of_several_topics_the_good_ones_are_created(ottla, new_name) -> None:
    good = new_name()
    created = ottla("topics", "create", good, "not/a/name")
    assert created.code == 1
    assert f"Created topic {good}" in created.out
    assert "not/a/name" in created.err


def test_a_dry_run_creates_nothing(ottla, new_name) -> None:
    name = new_name()
    assert ottla("topics", "create", name, "--dry-run").code == 0
    assert ottla("topics", "describe", name).code == 1


def test_partitions_cannot_become_fewer(ottla, topic: str) -> None:
    fewer = ottla("topics", "alter", topic, "--partitions", "1")
    assert (fewer.code, "fix:" in fewer.err) == (1, True)


def test_settings_are_set_shown_and_unset(ottla, topic: str) -> None:
    assert (
        ottla("configs", "set", "topic", topic, "retention.ms=1000", "segment.ms=60000").code == 0
    )
    shown = json.loads(ottla("configs", "get", "topic", topic, "--json").out)
    changed = {row["name"]: row["value"] for row in shown if row["source"] == "topic"}
    assert changed == {"retention.ms": "1000", "segment.ms": "60000"}
    assert ottla("configs", "unset", "topic", topic, "segment.ms").code == 0
    (row,) = json.loads(ottla("configs", "get", "topic", topic, "segment.ms", "--json").out)
    assert row["source"] == "default"


def test_unsetting_what_does_not_exist_is_refused(ottla, topic: str) -> None:
    assert ottla("configs", "set", "topic", topic, "segment.ms=60000").code == 0
    for command in (
        ("configs", "unset", "topic", topic, "segment.ms", "retention.msss"),
        ("configs", "unset", "broker", "default", "retention.msss"),
        ("topics", "alter", topic, "--unset", "segment.ms", "--unset", "retention.msss"),
    ):
        refused = ottla(*command)
        assert (refused.code, "retention.msss" in refused.err) == (2, True), command
    (row,) = json.loads(ottla("configs", "get", "topic", topic, "segment.ms", "--json").out)
    assert row["source"] == "topic"
    assert ottla("configs", "unset", "broker", "default", "log.retention.ms").code == 0


def test_a_setting_that_does_not_exist_or_fit_changes_nothing(ottla, topic: str) -> None:
    for bad in ("retention.msss=1", "retention.ms=soon"):
        refused = ottla("configs", "set", "topic", topic, "segment.ms=60000", bad)
        assert refused.code == 1
        assert refused.err.startswith("error: ")
    shown = json.loads(ottla("configs", "get", "topic", topic, "--json").out)
    assert [row for row in shown if row["source"] == "topic"] == []


def test_settings_of_an_unknown_topic_are_an_error_at_once(ottla) -> None:
    unknown = ottla("configs", "get", "topic", "never-there")
    assert (unknown.code, "there is no topic" in unknown.err) == (1, True)


def test_a_brokers_settings_can_be_read(ottla) -> None:
    cluster = json.loads(ottla("cluster", "describe", "--json").out)
    broker = str(cluster["brokers"][0]["id"])
    names = [line.split("\t")[0] for line in ottla("configs", "get", "broker", broker, "-a").lines]
    assert "log.retention.ms" in names or "log.retention.hours" in names


def test_the_cluster_names_its_brokers_and_their_disks(ottla, bootstrap: str) -> None:
    cluster = json.loads(ottla("cluster", "describe", "--json").out)
    assert cluster["controller"] in [broker["id"] for broker in cluster["brokers"]]
    places = [f"{broker['host']}:{broker['port']}" for broker in cluster["brokers"]]
    assert bootstrap in places
    assert cluster["brokers"][0]["log_dirs"]
    assert ottla("cluster", "describe").code == 0


def test_the_oldest_records_can_be_deleted(ottla, topic: str) -> None:
    ottla("produce", topic, "-p", "1", stdin="a\nb\nc\n")
    deleted = ottla("records", "delete", topic, "--before", "2", "-p", "1", "--yes", "--json")
    assert json.loads(deleted.out) == [{"partition": 1, "start_offset": 2, "deleted": 2}]
    assert ottla("consume", topic).lines == ["c"]
    assert ottla("records", "delete", topic, "--before", "end", "--yes").code == 0
    assert ottla("consume", topic).lines == []


def test_a_brokers_loggers_are_read_set_and_unset(ottla) -> None:
    name = "ottla.requests"
    assert ottla("configs", "set", "logger", "1", f"{name}=ERROR").code == 0
    assert ottla("configs", "get", "logger", "1", name).lines[1].split("\t")[:2] == [name, "ERROR"]
    assert ottla("configs", "unset", "logger", "1", name).code == 0
    assert "ERROR" not in ottla("configs", "get", "logger", "1", name).out

    loud = ottla("configs", "set", "logger", "1", f"{name}=LOUD")
    assert (loud.code, "WARN" in loud.err) == (1, True)
    nobody = ottla("configs", "unset", "logger", "1", "nobody")
    assert (nobody.code, "no logger named nobody" in nobody.err) == (2, True)
    everybody = ottla("configs", "get", "logger", "default")
    assert (everybody.code, "'default'" in everybody.err) == (2, True)
