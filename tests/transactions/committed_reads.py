"""Reads partitions as `read_committed` does, by hand, and knows where they end."""

from dataclasses import dataclass

from ottla.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ottla.records.batch import split
from ottla.records.control import ControlType, read_marker
from ottla.records.record import Record
from support.eventually import eventually
from support.requests import Place
from transactions.raw_producer import MessageConnection

FETCH_VERSION, OFFSET_FETCH_VERSION = 12, 8
READ_COMMITTED, READ_UNCOMMITTED = 1, 0


@dataclass(frozen=True, slots=True)
class PartitionRead:
    """What a reader of committed records saw of a partition, from its start."""

    records: list[Record]
    last_stable_offset: int
    high_watermark: int

    @property
    def values(self) -> list[bytes]:
        return [bytes(record.value or b"") for record in self.records]

    @property
    def is_stable(self) -> bool:
        """No transaction is open."""
        return self.last_stable_offset == self.high_watermark


class CommittedReader:
    """Reads the same partitions again and again, over one connection."""

    def __init__(self, bootstrap: str) -> None:
        self._connection = MessageConnection(bootstrap)

    def read(
        self, place: Place, *, start: int = 0, isolation: int = READ_COMMITTED
    ) -> PartitionRead:
        """Everything from an offset to where the isolation lets a reader come."""
        records: list[Record] = []
        offset = start
        while True:
            data = self._fetch(place, offset, isolation)
            end = data.last_stable_offset if isolation else data.high_watermark
            seen, following = _visible(data, offset, isolation)
            records += seen
            if following >= end or following == offset:
                assert following >= end, f"nothing to read at {offset}, but {place} goes to {end}"
                return PartitionRead(records, data.last_stable_offset, data.high_watermark)
            offset = following

    def wait_stable(self, *places: Place, timeout_seconds: float = 60.0) -> None:
        """Wait until no transaction is open in the partitions."""
        eventually(
            lambda: all(self._ends(place) for place in places),
            f"the end of all transactions in {places}",
            timeout_seconds=timeout_seconds,
        )

    def ends(self, place: Place) -> tuple[int, int]:
        """The last stable offset and the high watermark."""
        data = self._fetch(place, 0, READ_COMMITTED)
        return data.last_stable_offset, data.high_watermark

    def group_offset(self, group: str, place: Place) -> int:
        """The committed offset of a group; -1 where there is none."""
        request = OffsetFetchRequest(
            groups=[
                OffsetFetchRequestGroup(
                    group, topics=[OffsetFetchRequestTopics(place[0], partition_indexes=[place[1]])]
                )
            ],
            require_stable=True,
        )
        answer = self._connection.insist(
            request,
            OFFSET_FETCH_VERSION,
            OffsetFetchResponse,
            lambda answer: (
                answer.groups[0].error_code or answer.groups[0].topics[0].partitions[0].error_code
            ),
        )
        return answer.groups[0].topics[0].partitions[0].committed_offset

    def close(self) -> None:
        self._connection.close()

    def _ends(self, place: Place) -> bool:
        stable, high_watermark = self.ends(place)
        return stable == high_watermark

    def _fetch(self, place: Place, offset: int, isolation: int) -> PartitionData:
        partition = FetchPartition(place[1], fetch_offset=offset, partition_max_bytes=4 << 20)
        request = FetchRequest(
            isolation_level=isolation, topics=[FetchTopic(place[0], partitions=[partition])]
        )
        answer = self._connection.insist(
            request,
            FETCH_VERSION,
            FetchResponse,
            lambda answer: answer.responses[0].partitions[0].error_code,
        )
        return answer.responses[0].partitions[0]


def _visible(data: PartitionData, offset: int, isolation: int) -> tuple[list[Record], int]:
    """The records a client would hand out, and the offset to go on with."""
    records: list[Record] = []
    to_abort = sorted(
        (aborted.first_offset, aborted.producer_id) for aborted in data.aborted_transactions or []
    )
    aborting: set[int] = set()
    for batch in split(memoryview(bytes(data.records or b"")), ignore_torn_tail=True):
        offset = max(offset, batch.next_offset)
        while to_abort and to_abort[0][0] <= batch.last_offset:
            aborting.add(to_abort.pop(0)[1])
        if batch.is_control:
            marker = read_marker(batch)
            if marker is not None and marker.type is ControlType.ABORT:
                aborting.discard(batch.producer_id)
        elif not (isolation and batch.is_transactional and batch.producer_id in aborting):
            records += batch.records()
    return records, offset
