"""The messages of DescribeLogDirs, api key 35."""

from __future__ import annotations

from typing import Annotated, ClassVar

from ottla.protocol.message import Array, Bool, Int16, Int32, Int64, Message, Schema, String


class DescribableLogDirTopic(Message):
    topic: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[int], Array("0+", of=Int32)] = []


class DescribeLogDirsRequest(Message):
    """Ask what lies in a broker's data directories."""

    schema: ClassVar[Schema] = Schema(api_key=35, versions="0-5", flexible="2+")
    topics: Annotated[list[DescribableLogDirTopic] | None, Array("0+", nullable="0+")] = []


class DescribeLogDirsPartition(Message):
    partition_index: Annotated[int, Int32("0+")] = 0
    partition_size: Annotated[int, Int64("0+")] = 0
    offset_lag: Annotated[int, Int64("0+")] = 0
    is_future_key: Annotated[bool, Bool("0+")] = False


class DescribeLogDirsTopic(Message):
    name: Annotated[str, String("0+")] = ""
    partitions: Annotated[list[DescribeLogDirsPartition], Array("0+")] = []


class DescribeLogDirsResult(Message):
    error_code: Annotated[int, Int16("0+")] = 0
    log_dir: Annotated[str, String("0+")] = ""
    topics: Annotated[list[DescribeLogDirsTopic], Array("0+")] = []
    total_bytes: Annotated[int, Int64("4+")] = -1
    usable_bytes: Annotated[int, Int64("4+")] = -1
    is_cordoned: Annotated[bool, Bool("5+")] = False


class DescribeLogDirsResponse(Message):
    """The directories, and the size and lag of the logs in them."""

    schema: ClassVar[Schema] = Schema(api_key=35, versions="0-5", flexible="2+")
    throttle_time_ms: Annotated[int, Int32("0+")] = 0
    error_code: Annotated[int, Int16("3+")] = 0
    results: Annotated[list[DescribeLogDirsResult], Array("0+")] = []
