"""A broker that stands alone at an older level, and is raised to the newest."""

from __future__ import annotations

from pathlib import Path

import pytest

import ottla
from ottla.errors import ConfigError, RequestFailed
from ottla.settings.protocol_level import GROUP_FEATURE, LEVELS, TRANSACTION_FEATURE
from ottla.testing import Broker

OLD = {"inter.broker.protocol.version": LEVELS[0].name}
FEATURES = dict(LEVELS[-1].features)


def test_a_data_directory_is_taken_to_the_newest_level_and_not_back(tmp_path: Path) -> None:
    with Broker(data=tmp_path, settings=OLD) as broker:
        transact(broker.bootstrap_servers)
        with ottla.Admin(broker.bootstrap_servers) as admin:
            assert admin.describe_features().by_name[TRANSACTION_FEATURE].level == 0
            with pytest.raises(RequestFailed, match="can have 0 at most"):
                admin.update_features({TRANSACTION_FEATURE: 2})
        with pytest.raises(RequestFailed, match="does not speak this version"):
            join(broker.bootstrap_servers)
    with Broker(data=tmp_path) as broker:
        with ottla.Admin(broker.bootstrap_servers) as admin:
            admin.update_features(FEATURES)
            assert admin.describe_features().by_name[GROUP_FEATURE].level == 1
        transact(broker.bootstrap_servers)
        join(broker.bootstrap_servers)
    with pytest.raises(ConfigError, match="cannot go back"), Broker(data=tmp_path, settings=OLD):
        pass


def transact(servers: str) -> None:
    with ottla.Producer(servers, transactional_id="teller") as producer:
        producer.begin_transaction()
        producer.send("orders", b"value")
        producer.commit_transaction()


def join(servers: str) -> None:
    """Reads as a member of a group of the new kind."""
    with ottla.Consumer(
        "orders",
        bootstrap_servers=servers,
        group_id="readers",
        group_protocol="consumer",
        auto_offset_reset="earliest",
    ) as consumer:
        assert consumer.poll(20)
