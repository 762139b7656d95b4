"""Where the settings of `ottla serve` come from."""

from pathlib import Path

from ottla.cli.serve import gather_settings


def test_without_options_the_broker_listens_on_this_machine_only() -> None:
    assert gather_settings(None, None, None, (), None) == {
        "listeners": "PLAINTEXT://127.0.0.1:9092",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
    }


def test_options_win_over_set_and_set_over_the_file(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text("listeners=PLAINTEXT://0.0.0.0:1\nlog.dirs=/file\nnum.partitions=2\na.b=1\n")
    texts = gather_settings(
        "localhost:5", Path("data"), config, ("num.partitions=3", "log.dirs=/set"), "public:6"
    )
    assert texts == {
        "listeners": "PLAINTEXT://localhost:5",
        "advertised.listeners": "PLAINTEXT://public:6",
        "log.dirs": "data",
        "num.partitions": "3",
        "a.b": "1",
    }


def test_the_files_listener_counts_where_no_option_is_given(tmp_path: Path) -> None:
    config = tmp_path / "broker.toml"
    config.write_text('listeners = "PLAINTEXT://0.0.0.0:1"\n')
    assert gather_settings(None, None, config, (), None)["listeners"] == "PLAINTEXT://0.0.0.0:1"


def test_an_address_clients_can_use_is_advertised_as_it_is() -> None:
    def advertised(listen: str, *pairs: str) -> str | None:
        return gather_settings(listen, None, None, pairs, None).get("advertised.listeners")

    assert advertised("localhost:9093") == "PLAINTEXT://localhost:9093"
    assert advertised("localhost:0") is None
    assert advertised("0.0.0.0:9093") is None
    given = "PLAINTEXT://broker.example.com:1"
    assert advertised("localhost:9093", f"advertised.listeners={given}") == given
