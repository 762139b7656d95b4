"""A well-behaved client that works while others misbehave, and notices when it is disturbed."""

import threading
from types import TracebackType

from support.batches import batch, read_records
from support.eventually import eventually
from support.requests import FetchPlace, a_topic, fetch_one, metadata, produce
from support.wire import Connection

ROUNDS_PER_PROOF = 10


class GoodClient:
    """Produces one record and reads it back, over and over, on one connection; use as a context."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="good-client")
        self.rounds = 0
        self.trouble: Exception | None = None

    def __enter__(self) -> "GoodClient":
        self._thread.start()
        self.still_works()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(30)
        if error is None:
            assert not self._thread.is_alive(), "the good client hangs"
            assert self.trouble is None, f"the good client was disturbed: {self.trouble!r}"

    def _run(self) -> None:
        try:
            with Connection(self._bootstrap) as connection:
                topic = a_topic(connection, self._topic)
                while not self._stop.is_set():
                    self._work(connection, topic)
                    self.rounds += 1
        except Exception as trouble:  # reported by whoever looks next
            self.trouble = trouble

    def _work(self, connection: Connection, topic: str) -> None:
        value = b"good %d" % self.rounds
        answer = produce(connection, {(topic, 0): batch([value])})[topic, 0]
        assert (answer.error_code, answer.base_offset) == (0, self.rounds)
        fetched = fetch_one(connection, FetchPlace(topic, 0, self.rounds))
        assert [record.value for record in read_records(fetched.records)] == [value]
        assert metadata(connection, [topic]).topics[topic][0] == 0

    def still_works(self) -> None:
        """Wait until some more whole rounds are done."""
        wanted = self.rounds + ROUNDS_PER_PROOF

        def proven() -> bool:
            if self.trouble is not None:
                raise AssertionError("the good client was disturbed") from self.trouble
            return self.rounds >= wanted

        eventually(proven, "the good client's next rounds")
