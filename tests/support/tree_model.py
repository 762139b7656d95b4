"""What a metadata store must do, in dictionaries, and any operations to compare it by."""

from hypothesis import strategies as st

from ottla.cluster.store import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    SetData,
    StoreConflict,
)


class ModelTree:
    """What the tree must do, in dictionaries."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[bytes, int]] = {"/": (b"", 0)}

    def multi(self, operations: list[Operation]) -> None:
        before = dict(self.nodes)
        try:
            for operation in operations:
                self._do(operation)
        except StoreConflict:
            self.nodes = before
            raise

    def _do(self, operation: Operation) -> None:
        path = operation.path
        if isinstance(operation, Create):
            parent = path.rpartition("/")[0] or "/"
            if parent not in self.nodes:
                raise NoNode(parent)
            if path in self.nodes:
                raise NodeExists(path)
            self.nodes[path] = (operation.data, 0)
            return
        if path not in self.nodes:
            raise NoNode(path)
        version = self.nodes[path][1]
        if operation.version not in (ANY_VERSION, version):
            raise BadVersion(path, operation.version, version)
        if isinstance(operation, SetData):
            self.nodes[path] = (operation.data, version + 1)
        elif isinstance(operation, Delete):
            if any(other.startswith(f"{path}/") for other in self.nodes):
                raise NotEmpty(path)
            del self.nodes[path]


PATHS = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/a/x/1", "/b/x"])
DATA = st.binary(max_size=3)
VERSIONS = st.integers(-1, 2)
OPERATIONS = st.one_of(
    st.builds(Create, PATHS, DATA),
    st.builds(SetData, PATHS, DATA, VERSIONS),
    st.builds(Delete, PATHS, VERSIONS),
    st.builds(Check, PATHS, st.integers(0, 2)),
)
