"""Record batches that wait in a file between the task that encoded them and the driver.

Does not know what is in a batch beyond its checksum, nor who reads the file: only that it is
written once, by one attempt of one task, and read by the driver of the same micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from ottla.errors import ConfigError, OttlaError
from ottla.records.batch import RecordBatch

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
    from pyarrow.lib import NativeFile

_BUFFER_BYTES: Final = 1024 * 1024
LOCAL_DIRECTORIES: Final = "SPARK_LOCAL_DIRS"
_OWN_PREFIX: Final = "blockmgr-"
_FOLDER: Final = "ottla"


class StagingFailed(OttlaError):
    """What tasks leave for the driver cannot be written, or is not there as it was left."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"record batches staged in {path}: {reason}")


@dataclass(frozen=True, slots=True)
class StagedBatches:
    """Batches that stand in a file one after the other."""

    path: str
    position: int
    sizes: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """What all of them take."""
        return sum(self.sizes)

    def __iter__(self) -> Iterator[bytearray]:
        """Reads one after the other; what is not as it was written is an error."""
        try:
            files, name = _at(self.path)
            with files.open_input_file(name) as file:
                file.seek(self.position)
                for size in self.sizes:
                    yield self._read(file, size)
        except OSError as error:
            raise StagingFailed(self.path, str(error)) from error

    def _read(self, file: NativeFile, size: int) -> bytearray:
        batch = bytearray(size)
        if file.readinto(batch) != size:
            raise StagingFailed(self.path, "the file is too short")
        # The driver makes a new checksum when it signs the batch: what was damaged shows here only.
        if not RecordBatch(memoryview(batch)).is_intact():
            raise StagingFailed(self.path, "the file is damaged")
        return batch


class StagingFile:
    """A file being written, in a `with` block; one that is left by an error is removed."""

    __slots__ = ("_file", "_files", "_name", "_position", "path")

    def __init__(self, directory: str) -> None:
        self.path = f"{directory.rstrip('/')}/{uuid4()}.batches"
        self._position = 0
        try:
            self._files, self._name = _at(self.path)
            self._files.create_dir(self._name.rpartition("/")[0], recursive=True)
            self._file: NativeFile = self._files.open_output_stream(
                self._name, buffer_size=_BUFFER_BYTES
            )
        except (OSError, ValueError) as error:  # Arrow's errors are both
            raise StagingFailed(self.path, str(error)) from error

    def __enter__(self) -> StagingFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            try:
                self._file.close()
            except OSError:
                pass  # the disk is full, say: there is an error on its way already
            remove([self.path])
            return
        try:
            self._file.close()
        except OSError as error:
            remove([self.path])
            raise StagingFailed(self.path, str(error)) from error

    def add(self, batches: Iterable[bytearray]) -> StagedBatches:
        """Writes the batches behind what is there."""
        position, sizes = self._position, []
        try:
            for batch in batches:
                self._file.write(batch)
                sizes.append(len(batch))
        except OSError as error:
            raise StagingFailed(self.path, str(error)) from error
        self._position += sum(sizes)
        return StagedBatches(self.path, position, tuple(sizes))


def remove(paths: Iterable[str]) -> None:
    """Removes files that nobody needs any more; one that is gone, or stays, does no harm."""
    for path in paths:
        try:
            files, name = _at(path)
            files.delete_file(name)
        except OSError:
            pass


def local_directory(environment: Mapping[str, str]) -> str:
    """The directory of the Spark process this worker belongs to, and of no other; or nothing.

    Spark gives each of its processes directories with a name of their own, tells them to its
    workers, and removes them when it ends.
    """
    first = environment.get(LOCAL_DIRECTORIES, "").split(",")[0]
    is_own = first.rstrip("/").rpartition("/")[2].startswith(_OWN_PREFIX)
    return f"{first.rstrip('/')}/{_FOLDER}" if is_own else ""


def check_place(directory: str) -> None:
    """Complains about what is neither an absolute path nor a URI of a file system Arrow knows."""
    from pyarrow import ArrowInvalid

    try:
        _at(directory)
    except (ArrowInvalid, OSError) as error:
        raise ConfigError(
            "stagingDirectory",
            f"{directory!r} is no place for files: {error}",
            "give an absolute path, or a URI such as hdfs://host/directory",
        ) from None


def _at(path: str) -> tuple[FileSystem, str]:
    """The file system of a path or URI, and the file's name there."""
    from pyarrow.fs import FileSystem

    found: tuple[FileSystem, str] = FileSystem.from_uri(path)
    return found
