"""Sends that fail and whose results nobody takes: told once, at the flush or at the end."""

import asyncio
import gc
import logging
import subprocess
import sys
import textwrap
from collections.abc import Callable

import pytest

import ottla
import ottla.aio
from ottla.clients.failures import Fault, SendsFailed, TransactionMustAbort, fault_of
from ottla.clients.producer import unheard
from ottla.errors import ErrorCode, OttlaError
from ottla.testing import Broker

WAIT_S = 60.0
LARGE = b"x" * 3000
NewName = Callable[[], str]


@pytest.fixture
def tiny(bootstrap: str, new_name: NewName) -> str:
    """A topic that takes no record of LARGE."""
    name = new_name()
    with ottla.Admin(bootstrap) as admin:
        admin.create_topics(ottla.NewTopic(name, 1, configs={"max.message.bytes": "1000"}))
    return name


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def send_and_forget(bootstrap: str, topic: str, *values: bytes, fails: bool = False) -> None:
    with ottla.Producer(bootstrap) as producer:
        for value in values:
            producer.send(topic, value)
        if fails:
            raise ZeroDivisionError


def test_leaving_the_block_tells_all_of_them_at_once(
    bootstrap: str, tiny: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SendsFailed) as caught:
        send_and_forget(bootstrap, tiny, b"small", *[LARGE] * 5)
    error = caught.value
    assert error.record_count == 5
    assert sum(each.record_count for each in error.failures) == 5
    assert {str(each.partition) for each in error.failures} == {f"{tiny}-0"}
    assert error.failures[0].error.code == ErrorCode.MESSAGE_TOO_LARGE
    assert fault_of(error) is Fault.CALLER
    assert f"5 of partition {tiny}-0" in str(error)
    assert warnings_in(caplog) == [str(error)]


def test_a_flush_tells_it_and_the_end_does_not_repeat_it(bootstrap: str, tiny: str) -> None:
    with ottla.Producer(bootstrap) as producer:
        producer.send(tiny, LARGE)
        with pytest.raises(SendsFailed, match="1 record was not acknowledged"):
            producer.flush()
        producer.flush()
        producer.send(tiny, b"small")


def test_a_result_that_somebody_took_is_not_told_again(
    bootstrap: str, tiny: str, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[OttlaError | None] = []
    with ottla.Producer(bootstrap) as producer:
        with pytest.raises(OttlaError):
            producer.send(tiny, LARGE).result(WAIT_S)
        assert producer.send(tiny, LARGE).exception(WAIT_S) is not None
        producer.send(tiny, LARGE, on_delivery=lambda _, error: heard.append(error))
        late = producer.send(tiny, LARGE)
        assert late.batch.wait(WAIT_S)
        assert late.exception() is not None
    assert len(heard) == 1
    assert warnings_in(caplog) == []


def test_of_a_batch_that_was_split_only_what_nobody_took_is_told(bootstrap: str, tiny: str) -> None:
    with ottla.Producer(bootstrap, linger_ms=1000) as producer:
        good = [producer.send(tiny, b"y" * 300) for _ in range(5)]
        bad = [producer.send(tiny, LARGE) for _ in range(3)]
        assert bad[1].exception(WAIT_S) is not None
        with pytest.raises(SendsFailed) as caught:
            producer.flush()
        assert [delivery.exception(WAIT_S) for delivery in good] == [None] * 5
    assert caught.value.record_count == 2


def test_an_interceptor_is_not_the_user(bootstrap: str, tiny: str) -> None:
    class Listening:
        def on_send(self, record: object) -> object:
            return record

        def on_acknowledgement(self, metadata: object, error: object) -> None: ...

    with ottla.Producer(bootstrap, interceptors=[Listening()]) as producer:
        producer.send(tiny, LARGE)
        producer.send(tiny, LARGE, on_delivery=lambda *_: None)
        with pytest.raises(SendsFailed, match="1 record was"):
            producer.flush()


def test_an_exception_in_the_block_is_not_hidden(
    bootstrap: str, tiny: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        send_and_forget(bootstrap, tiny, LARGE, fails=True)
    assert "1 record was not acknowledged" in caught.value.__notes__[0]
    assert len(warnings_in(caplog)) == 1


def test_asyncio_does_the_same(bootstrap: str, tiny: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with ottla.aio.Producer(bootstrap) as producer:
            await producer.send(tiny, LARGE)
            with pytest.raises(SendsFailed, match="1 record was"):
                await producer.flush()
            with pytest.raises(OttlaError):
                await producer.send_and_wait(tiny, LARGE)
            waiting = [asyncio.ensure_future(take(await producer.send(tiny, LARGE)))]
            await asyncio.sleep(0)
            await producer.flush()
            assert isinstance((await asyncio.gather(*waiting))[0], OttlaError)
        with pytest.raises(SendsFailed, match="2 records were"):
            await send_two()

    async def send_two() -> None:
        async with ottla.aio.Producer(bootstrap) as producer:
            await producer.send(tiny, LARGE)
            await producer.send(tiny, LARGE)

    async def take(delivery: object) -> object:
        try:
            return await delivery  # type: ignore[misc]
        except OttlaError as error:
            return error

    asyncio.run(main())
    assert len(warnings_in(caplog)) == 2


def test_asyncio_does_not_hide_an_exception_either(bootstrap: str, tiny: str) -> None:
    async def main() -> None:
        async with ottla.aio.Producer(bootstrap) as producer:
            await producer.send(tiny, LARGE)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        asyncio.run(main())
    assert "1 record was not acknowledged" in caught.value.__notes__[0]


def test_a_broker_that_is_gone_is_told_too() -> None:
    with Broker() as broker:
        producer = ottla.Producer(broker.bootstrap_servers, delivery_timeout_ms=500, linger_ms=0)
        producer.send("t", b"first").result(WAIT_S)
    producer.send("t", b"second")
    with pytest.raises(SendsFailed, match="1 record was not acknowledged"):
        producer.close()
    producer.close()


def test_more_failures_than_are_kept_are_counted(
    bootstrap: str, tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unheard, "BATCHES_KEPT_MAX", 3)
    with ottla.Producer(bootstrap, linger_ms=0) as producer:
        for _ in range(20):
            producer.send(tiny, LARGE)
        with pytest.raises(SendsFailed) as caught:
            producer.flush()
    assert caught.value.record_count == 20
    assert caught.value.more_count > 0
    assert len(caught.value.failures) == 4
    assert sum(each.record_count for each in caught.value.failures) + caught.value.more_count == 20


# --- transactions


def test_a_commit_tells_of_its_records_and_nothing_is_told_again(
    bootstrap: str, tiny: str, new_name: NewName, caplog: pytest.LogCaptureFixture
) -> None:
    with ottla.Producer(bootstrap, transactional_id=new_name()) as producer:
        with pytest.raises(TransactionMustAbort), producer.transaction():
            producer.send(tiny, LARGE)
        with producer.transaction():
            producer.send(tiny, b"small")
    assert warnings_in(caplog) == []


def test_what_is_aborted_is_not_told(bootstrap: str, tiny: str, new_name: NewName) -> None:
    with ottla.Producer(bootstrap, transactional_id=new_name(), linger_ms=1000) as producer:
        producer.begin_transaction()
        producer.send(tiny, b"small")
        producer.abort_transaction()
        producer.flush()


# --- dropped


def test_a_dropped_producer_of_asyncio_gives_a_warning_that_names_it(bootstrap: str) -> None:
    async def main() -> None:
        await ottla.aio.Producer(bootstrap).start()
        gc.collect()

    with pytest.warns(ResourceWarning, match=f"unclosed ottla.aio.Producer of {bootstrap}"):
        asyncio.run(main())


def test_a_dropped_producer_gives_a_warning_that_names_it(bootstrap: str) -> None:
    with pytest.warns(ResourceWarning, match=f"unclosed ottla.Producer of {bootstrap}"):
        ottla.Producer(bootstrap).metrics()


SCRIPT = """
import ottla
producer = ottla.Producer({bootstrap!r})
producer.send({topic!r}, {value!r})
{drop}
"""


@pytest.mark.parametrize("drop", ["", "del producer"])
def test_an_interpreter_that_exits_is_not_silent(bootstrap: str, tiny: str, drop: str) -> None:
    script = textwrap.dedent(SCRIPT).format(bootstrap=bootstrap, topic=tiny, value=LARGE, drop=drop)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert "1 record was not acknowledged, and nobody took the results" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interpreter_that_exits_sends_what_a_dropped_producer_had(
    bootstrap: str, tiny: str
) -> None:
    script = textwrap.dedent(SCRIPT).format(
        bootstrap=bootstrap, topic=tiny, value=b"small", drop="del producer"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    assert ottla.read_topic(tiny, bootstrap_servers=bootstrap)["value"].to_pylist() == [b"small"]
