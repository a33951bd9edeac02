"""Run groups of DLedger 0.2.3 on loopback.

Members are killed, stopped and restarted, and the power of one of them is cut.

Each member is a store of RocketMQ 4.9.3 in a process of its own. Every event is recorded as a line with its time, so
that a run is its own description. All processes end with the lab.

A member that is started with `is_traced` is recorded at each system call. Its power can be cut. The disk image after
the cut is composed from the recording and proven legal, as for a store under test.
"""

import base64
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tornpage.peers.errors import PeerCrashed, PeerTimeout, PeerUnavailable
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.process import OPENED
from tornpage.properties.disk.certificate import assert_legal
from tornpage.properties.disk.choosing import chosen
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import compose, disk_state, in_flight_writes
from tornpage.properties.foreign.held_file import HeldFile
from tornpage.properties.foreign.process import Died, Hung, StoreFailed, StoreProcess
from tornpage.properties.foreign.spec import CommandSpec
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.properties.foreign.watching import WatchedDirectory, write_directory
from tornpage.properties.scratch import remove_tree

__all__ = ["FILE_BYTES", "RaftLab", "RaftNode", "free_port"]

FILE_BYTES = 4096
_ANSWER_S = 60.0
_PATIENCE_S = 90.0
_PAUSE_S = 0.05

State = dict[str, Any]


class RaftLab:
    """One run. Use it as a context manager; it ends its members and removes their files."""

    def __init__(self, release: Release) -> None:
        self.events: list[str] = []
        self.nodes: list[RaftNode] = []
        self.release = release
        self._begun = time.monotonic()
        self.work = Path(tempfile.mkdtemp(prefix="tornpage-raft-"))
        self.peers = ""

    def __enter__(self) -> "RaftLab":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for node in self.nodes:
                node.end()
        finally:
            remove_tree(str(self.work))

    def note(self, event: str) -> None:
        """Record an event with its time in ms since the begin of the run."""
        self.events.append(f"{(time.monotonic() - self._begun) * 1000:7.0f} ms  {event}")

    def group(self, members: int) -> "list[RaftNode]":
        """Start a group on empty directories."""
        self.peers = ";".join(f"n{number}-127.0.0.1:{free_port()}" for number in range(members))
        self.nodes = [RaftNode(self, number) for number in range(members)]
        self.start(*self.nodes)
        return self.nodes

    def start(self, *nodes: "RaftNode") -> None:
        """Start members at the same time."""
        for node in nodes:
            node.launch()
        for node in nodes:
            node.open()

    def turn(self) -> None:
        """Let traced members go on."""
        for node in self.nodes:
            node.go_on()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.note(f"wait {seconds:g} s")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.turn()
            time.sleep(0.002)

    def until(self, what: str, holds: Callable[[], Any], *, seconds: float = _PATIENCE_S) -> Any:
        """Ask again and again until an answer is true, and return it. Raises PeerTimeout."""
        until = time.monotonic() + seconds
        while not (found := holds()):
            if time.monotonic() > until:
                raise PeerTimeout(f"not within {seconds:g} s: {what}")
            pause = time.monotonic() + _PAUSE_S
            while time.monotonic() < pause:
                self.turn()
                time.sleep(0.002)
        self.note(what)
        return found

    def leader(self, *nodes: "RaftNode") -> "RaftNode":
        """Wait until one of these members leads, and return it."""

        def leading() -> RaftNode | None:
            return next((node for node in nodes if node.state()["role"] == "LEADER"), None)

        found: RaftNode = self.until(f"{' or '.join(node.name for node in nodes)} leads", leading)
        self.note(f"{found.name} leads term {found.state()['term']}")
        return found


class RaftNode:
    """A member: a directory, and a process while it is up."""

    def __init__(self, lab: RaftLab, number: int) -> None:
        self.name = f"n{number}"
        self.root = lab.work / self.name
        self._lab = lab
        self._disks = 0
        self._process: StoreProcess | None = None
        self._watched: WatchedDirectory | None = None
        self.root.mkdir()

    # ---- processes -----------------------------------------------------------------------------------------------

    def start(self, *, is_traced: bool = False) -> State:
        """Start the process and open the store; return its state.

        Raises PeerUnavailable if it is to be traced and cannot.
        """
        self.launch(is_traced=is_traced)
        return self.open()

    def launch(self, *, is_traced: bool = False) -> None:
        """Start the process and do not wait for the store. Raises PeerUnavailable."""
        self._lab.note(f"start {self.name}" + (", traced" if is_traced else ""))
        self._watched = None
        if is_traced:
            reason = why_untraceable()
            if reason:
                raise PeerUnavailable(f"the power of a member cannot be cut here: {reason}")
            self._watched = WatchedDirectory(self.root, _durable(self.root))
        self._process = StoreProcess(
            CommandSpec(tuple(self._command())), self.root, watched=self._watched, answer_seconds=_ANSWER_S
        )
        self._process.meanwhile = self._lab.turn
        self._process.send_ahead([self._opening()])

    def _opening(self) -> dict[str, Any]:
        return {
            "do": "open_store", "dir": str(self.root), "member": self.name, "peers": self._lab.peers,
            "data_file_bytes": FILE_BYTES,
        }  # fmt: skip

    def open(self) -> State:
        """Wait until the store of a started process is open, and return its state."""
        return self.ask(**self._opening())

    def _command(self) -> list[str]:
        return [
            self._lab.release.java,
            "-Xmx160m",
            "-XX:-UsePerfData",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
            f"-Duser.home={self._lab.work}",
            "-cp",
            self._lab.release.classpath,
            self._lab.release.component.main,
        ]

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send a request and return the answer. Raises PeerFailed and its subclasses."""
        if self._process is None:
            raise PeerCrashed(f"{self.name} does not run")
        try:
            answer = self._process.ask(do, **arguments)
        except Hung as error:
            raise PeerTimeout(f"{self.name}: {error.sentence}") from error
        except (Died, StoreFailed) as error:
            raise PeerCrashed(f"{self.name}: {error.sentence}") from error
        if "error" in answer:
            raise PeerCrashed(f"{self.name}: {answer['error']}")
        return answer

    def go_on(self) -> None:
        """Let the process go on if it is traced and has stopped at a call."""
        if self._process is not None:
            self._process.go_on()

    def stop(self) -> None:
        """Stop the process, as a long pause does."""
        self._lab.note(f"SIGSTOP {self.name}")
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """End the pause of the process."""
        self._lab.note(f"SIGCONT {self.name}")
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.kill(self._process.id, number)

    def kill(self) -> None:
        """Kill the process."""
        self._lab.note(f"SIGKILL {self.name}")
        self.end()

    def end(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()

    def close(self) -> None:
        """Shut the store down and end the process."""
        self._lab.note(f"close {self.name}")
        self.ask("close")
        self.end()

    # ---- power losses --------------------------------------------------------------------------------------------

    def hold_syncs(self) -> None:
        """Let no sync of this traced member begin from now on."""
        self._lab.note(f"the disk of {self.name} is slow: its syncs wait")
        assert self._process is not None
        self._process.hold_syncs(True)

    def cut_power(self, folders: Sequence[str]) -> list[str]:
        """Cut the power of this traced member.

        Of the writes that were not synced those to files in `folders` are lost, and all others survive. Return the
        names of the lost ones. Raises HarnessError if the image is not legal.
        """
        watched = self._watched
        assert watched is not None
        assert self._process is not None
        recorded = watched.until(watched.mark())
        if recorded.unsupported:
            raise PeerUnavailable(f"the power of {self.name} cannot be cut: {recorded.unsupported}")
        position = recorded.events[-1]
        state = disk_state(recorded.base, recorded.journal, position, disk="journal")
        writes = in_flight_writes(state)
        lost = [each.name for each in writes if each.kind == "page" and any(folder in each.name for folder in folders)]
        choices = chosen(writes, dict.fromkeys(lost, 0), "kept")
        image = compose(state, choices)
        assert_legal(recorded.base, recorded.journal, position, choices, image, disk="journal")
        self.end()
        self._disks += 1
        self.root = self._lab.work / f"{self.name}-after-{self._disks}"
        self.root.mkdir()
        write_directory(image, self.root)
        self._lab.note(f"power cut of {self.name}: {len(writes)} writes in flight, lost: {', '.join(lost) or 'none'}")
        return lost

    # ---- the store -----------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Return what the member shows of itself."""
        return self.ask("state")

    def put(self, body: str, *, topic: str = "T") -> dict[str, Any]:
        """Put a message."""
        answer = self.ask("put", topic=topic, body=base64.b64encode(_marked(body)).decode())
        self._lab.note(f"put {body} to {self.name}: {answer['status']} after {answer['ms']} ms")
        return answer

    def fill(self, count: int) -> None:
        """Put messages that differ, and record one event."""
        for number in range(count):
            self.ask("put", topic="T", body=base64.b64encode(b"message %d" % number).decode())
        self._lab.note(f"put {count} messages to {self.name}")

    def entry(self, index: int) -> tuple[int, bytes] | None:
        """Return the term and the body of an entry, None if there is none."""
        found = self.ask("entries", begin=index, end=index + 1)["entries"]
        return (found[0]["term"], base64.b64decode(found[0]["body"])) if found else None

    def shown(self, index: int, bodies: Sequence[str]) -> str:
        """Return a short text of an entry, with the one of some bodies that it has."""
        found = self.entry(index)
        if found is None:
            return "no entry"
        body = next((each for each in bodies if _marked(each) in found[1]), "another body")
        return f"{body} (term {found[0]})"

    def messages(self) -> list[bytes]:
        """Return the records that a consumer reads of the queue."""
        shown = self.ask("read", topic="T", offset=0, count=32)["records"]
        return [base64.b64decode(record) for record in shown]

    def serves(self, body: str) -> bool:
        """Whether a consumer reads a message."""
        return any(_marked(body) in record for record in self.messages())

    def damage(self, position: int, data: bytes) -> None:
        """Overwrite bytes of the data files of a member that is down."""
        first = position - position % FILE_BYTES
        self._lab.note(f"{len(data)} bytes at {position} of the files of {self.name} change")
        with open(self.root / f"dledger-{self.name}" / "data" / f"{first:020d}", "r+b") as file:
            file.seek(position - first)
            file.write(data)

    def position(self, index: int) -> int:
        """Return the position of an entry."""
        (found,) = self.ask("entries", begin=index, end=index + 1)["entries"]
        return int(found["pos"])


def _marked(body: str) -> bytes:
    """Return the bytes of a body. No other bytes of a record contain them."""
    return f"<{body}>".encode()


def free_port() -> int:
    """Return a port of loopback that no process listens at."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def _durable(root: Path) -> Image:
    """Make a directory durable, and return it as an image."""
    directories, files = {"/"}, {}
    for above, names, leaves in os.walk(root):
        inside = "/" + str(Path(above).relative_to(root)) if above != str(root) else ""
        directories |= {f"{inside}/{name}" for name in names}
        for name in leaves:
            held = HeldFile()
            with open(Path(above) / name, "rb") as file:
                os.fsync(file.fileno())
                held.refresh(0, file.fileno(), None)
            files[f"{inside}/{name}"] = held.content()
        descriptor = os.open(above, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return Image(frozenset(directories), files)
