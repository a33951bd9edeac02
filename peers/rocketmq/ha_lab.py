"""Run Java stores with replication over a network that a schedule drives.

The far end of each link of a Java store is a socket of the schedule, on loopback. Every event of the stores and the
links is recorded as a line with its time, so that a run is its own description.
Source: the bytes of 4.9.3 (impl/replication/classic.py).
"""

import os
import socket
import struct
import subprocess
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from tornpage.peers.errors import PeerCrashed, PeerTimeout
from tornpage.peers.rocketmq.installing import Release
from tornpage.properties.scratch import remove_tree

__all__ = ["FILE_BYTES", "Answer", "Frame", "HaLab", "HaLink", "HaStore", "frames_of", "heartbeat"]

FILE_BYTES = 16_384
_OFFSET = struct.Struct(">q")
_HEAD = struct.Struct(">qi")
_OPENED = ("java.nio", "sun.nio.ch", "jdk.internal.ref")
_ANSWER_S = 60.0
_STOP_S = 10.0

Answer = dict[str, int]
"""The names and numbers of an answer."""


class Frame(NamedTuple):
    """What a master sent. A heartbeat has no body."""

    offset: int
    body: bytes


def frames_of(data: bytes) -> tuple[list[Frame], Frame | None, int]:
    """Split what a master sent into frames.

    Return whole frames, the begin of an incomplete one or None, and the size that the incomplete one states.
    """
    found: list[Frame] = []
    at = 0
    while at + _HEAD.size <= len(data):
        offset, size = _HEAD.unpack_from(data, at)
        frame = Frame(offset, data[at + _HEAD.size : at + _HEAD.size + size])
        if len(frame.body) < size:
            return found, frame, size
        found.append(frame)
        at += _HEAD.size + size
    return found, None, 0


def heartbeat(offset: int) -> bytes:
    """Return a frame without a body."""
    return _HEAD.pack(offset, 0)


class HaLab:
    """One run. Use it as a context manager; it ends its stores and removes their files."""

    def __init__(self, release: Release) -> None:
        self.events: list[str] = []
        self._release = release
        self._begun = time.monotonic()
        self._stack = ExitStack()
        self._work = Path(tempfile.mkdtemp(prefix="tornpage-ha-"))
        self._stack.callback(remove_tree, str(self._work))

    def __enter__(self) -> "HaLab":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def note(self, event: str) -> None:
        """Record an event with its time in ms since the begin of the run."""
        self.events.append(f"{(time.monotonic() - self._begun) * 1000:7.0f} ms  {event}")

    def store(self, name: str, role: str, **options: object) -> "HaStore":
        """Open a Java store; `options` are arguments of the program, as `master` and `file`."""
        told = "".join(f" {key}={value}" for key, value in options.items())
        self.note(f"open {name} as {role}{told}")
        store = HaStore(self, name, self._work / name, self._release, {"role": role, **options})
        self._stack.callback(store.kill, quietly=True)
        return store

    def listen(self) -> "HaMaster":
        """Listen as a master of the schedule."""
        master = HaMaster(self)
        self._stack.callback(master.close)
        return master

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.note(f"wait {seconds:g} s")
        time.sleep(seconds)


class HaStore:
    """A Java store in a process of its own, with its listener at `port`."""

    def __init__(self, lab: HaLab, name: str, root: Path, release: Release, options: dict[str, object]) -> None:
        self.name, self.root, self.port = name, root, _free_port()
        self._lab = lab
        root.mkdir(exist_ok=True)
        home = root.parent / "home"
        home.mkdir(exist_ok=True)
        given = {"root": str(root), "port": self.port, **options}
        command = [
            release.java,
            "-Xmx192m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
            f"-Duser.home={home}",
            "-cp",
            release.classpath,
            "peer.HaPeer",
            *(f"{key}={value}" for key, value in given.items()),
        ]
        with (root.parent / "stderr").open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0
            )
        self._read_line(until=time.monotonic() + _ANSWER_S)

    def _read_line(self, *, until: float) -> str:
        assert self._process.stdout is not None
        line = b""
        os.set_blocking(self._process.stdout.fileno(), False)
        while not line.endswith(b"\n"):
            if time.monotonic() > until:
                raise PeerTimeout(f"{self.name} gave no answer within {_ANSWER_S:g} s")
            piece: bytes | None = self._process.stdout.read(1)
            if piece == b"" or (piece is None and self._process.poll() is not None):
                raise PeerCrashed(f"{self.name} ended with code {self._process.wait()}")
            if piece is None:
                time.sleep(0.001)
            else:
                line += piece
        return line.decode().strip()

    def ask(self, line: str) -> Answer:
        """Send a line and return its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        answer = self._read_line(until=time.monotonic() + _ANSWER_S)
        self._lab.note(f"{self.name}: {line} -> {answer}")
        pairs = (word.partition("=") for word in answer.split() if "=" in word)
        return {name: int(value) for name, _, value in pairs}

    def put(self, count: int, size: int = 500, fill: str = "a") -> Answer:
        """Put messages; return the count of each status, and the time in `ms`."""
        return self.ask(f"put {count} {size} {fill}")

    def state(self) -> Answer:
        """Return offsets and counts."""
        return self.ask("state")

    def connect(self, *, receive_bytes: int = 0) -> "HaLink":
        """Connect as a replica of the schedule.

        `receive_bytes` limits what arrives before it is read.
        """
        self._lab.note(f"a replica connects to {self.name}")
        connection = socket.socket()
        connection.settimeout(5)
        if receive_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)  # before the window is stated
        connection.connect(("127.0.0.1", self.port))
        return HaLink(self._lab, connection)

    def cpu_share(self, seconds: float) -> float:
        """Return the processor time of the process for each second of a while."""

        def used() -> int:
            words = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
            return int(words[11]) + int(words[12])

        before = used()
        time.sleep(seconds)
        share = (used() - before) / os.sysconf("SC_CLK_TCK") / seconds
        self._lab.note(f"{self.name} uses {share:.0%} of a processor")
        return share

    def log(self) -> dict[int, bytes]:
        """Return the log files by offset."""
        return {int(path.name): path.read_bytes() for path in sorted((self.root / "commitlog").iterdir())}

    def lose_tail(self, offset: int) -> None:
        """Zero the log from an offset on, as a power loss may leave bytes that were not flushed."""
        self._lab.note(f"a power loss leaves {self.name} its log up to {offset}")
        for base, content in self.log().items():
            kept = content[: max(0, offset - base)]
            (self.root / "commitlog" / f"{base:020d}").write_bytes(kept + bytes(len(content) - len(kept)))

    def close(self) -> Answer:
        """Shut the store down."""
        return self.ask("close")

    def tell_close(self) -> None:
        """Begin to shut the store down, without waiting."""
        self._lab.note(f"{self.name}: close")
        assert self._process.stdin is not None
        self._process.stdin.write(b"close\n")

    def kill(self, *, quietly: bool = False) -> None:
        """End the process at once."""
        if not quietly:
            self._lab.note(f"kill {self.name}")
        if self._process.poll() is None:
            self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_S)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


class HaLink:
    """The end of a link that the schedule holds."""

    def __init__(self, lab: HaLab, connection: socket.socket) -> None:
        self._lab = lab
        self._socket = connection
        self._held = b""
        self.is_over = False
        lab._stack.callback(connection.close)

    def report(self, offset: int) -> None:
        """Send what a replica sends: an offset."""
        self._lab.note(f"the replica reports {offset}")
        self._socket.sendall(_OFFSET.pack(offset))

    def send(self, offset: int, body: bytes, *, size: int | None = None) -> None:
        """Send what a master sends; `size` is stated instead of the length of the body."""
        stated = len(body) if size is None else size
        self._lab.note(f"the master sends a frame at {offset} of {stated} bytes" + ("" if stated else ": a heartbeat"))
        with suppress(BlockingIOError, TimeoutError):
            self._socket.sendall(_HEAD.pack(offset, stated) + body)

    def send_some(self, data: bytes) -> bool:
        """Send what the other end takes within some seconds; return whether it took all."""
        self._socket.settimeout(4)
        try:
            self._socket.sendall(data)
        except TimeoutError:
            return False
        return True

    def frame(self, seconds: float) -> Frame | None:
        """Return the next frame of a master, None if none comes in time."""
        head = self._read(_HEAD.size, seconds)
        if head is None:
            return None
        offset, size = _HEAD.unpack(head)
        body = self._read(size, seconds) or b""
        self._lab.note(f"the replica receives a frame at {offset} of {size} bytes" + ("" if size else ": a heartbeat"))
        return Frame(offset, body)

    def stream(self, seconds: float) -> bytes:
        """Return all bytes until none has come for a while or the link is over.

        They are one event of the record.
        """
        found = bytearray()
        while (piece := self._read(1, seconds)) is not None:
            found += piece + self._held
            self._held = b""
        self._lab.note(f"the replica receives {len(found)} bytes" + (", and the link ends" if self.is_over else ""))
        return bytes(found)

    def frames(self, seconds: float) -> list[Frame]:
        """Return all frames until none has come for a while."""
        found = []
        while (frame := self.frame(seconds)) is not None:
            found.append(frame)
        return found

    def reported(self, seconds: float) -> int | None:
        """Return the next report of a replica, None if none comes in time."""
        data = self._read(_OFFSET.size, seconds)
        if data is None:
            return None
        (offset,) = _OFFSET.unpack(data)
        self._lab.note(f"the master receives the report {offset}")
        return int(offset)

    def _read(self, size: int, seconds: float) -> bytes | None:
        until = time.monotonic() + seconds
        while len(self._held) < size:
            self._socket.settimeout(max(0.001, until - time.monotonic()))
            try:
                piece = self._socket.recv(1 << 16)
            except TimeoutError:
                return None
            except OSError:
                piece = b""
            if not piece:
                self.is_over = True
                return None
            self._held += piece
        found, self._held = self._held[:size], self._held[size:]
        return found

    def close(self) -> None:
        """End the link."""
        self._lab.note("the link ends")
        self._socket.close()


class HaMaster:
    """A listener of the schedule, to which Java slaves connect."""

    def __init__(self, lab: HaLab) -> None:
        self._lab = lab
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"

    def accept(self, seconds: float = 15) -> HaLink | None:
        """Return the next link of a slave, None if none comes in time."""
        self._socket.settimeout(seconds)
        try:
            connection, _ = self._socket.accept()
        except TimeoutError:
            return None
        self._lab.note("a slave connects")
        return HaLink(self._lab, connection)

    def accepted(self, seconds: float = 15) -> HaLink:
        """Return the next link of a slave. Raises PeerTimeout."""
        link = self.accept(seconds)
        if link is None:
            raise PeerTimeout(f"no slave connected within {seconds:g} s")
        return link

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
