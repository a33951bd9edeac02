"""A Java store of an installed release as master or slave, in a process of its own."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tornpage.peers.errors import PeerUnavailable
from tornpage.peers.rocketmq.installing import Release

__all__ = ["JavaNode", "java_node"]

_OPENED = ("java.nio", "sun.nio.ch", "jdk.internal.ref")
_HEAP = "-Xmx256m"


class JavaNode:
    """A Java store that replicates. Its commands are those of ReplicaNode.java."""

    def __init__(
        self, release: Release, directory: Path, role: str, *, port: int, file_bytes: int, master: str = ""
    ) -> None:
        """Start the process and wait until the store is open. Raises PeerUnavailable."""
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
        home = directory.parent / "home"
        home.mkdir(parents=True, exist_ok=True)
        arguments = [str(directory), role, str(file_bytes), str(port), *([master] if master else [])]
        program = [_HEAP, *opened, f"-Duser.home={home}", "-cp", release.classpath, "peer.ReplicaNode", *arguments]
        with (directory.parent / "stderr").open("ab") as errors:
            self._process = subprocess.Popen(
                [release.java, *program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        try:
            self._line("ready")
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def ask(self, line: str) -> str:
        """Send a line and return its answer."""
        self.tell(line)
        return self.answer(line)

    def tell(self, line: str) -> None:
        """Send a line without waiting for its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def answer(self, line: str) -> str:
        """Return the answer to a line that was sent."""
        return self._line(line.split()[0])

    def _line(self, word: str) -> str:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            if line.startswith(word):
                return line.removeprefix(word).strip()
        raise PeerUnavailable(f"the Java store ended before it answered {word!r}")

    @property
    def end(self) -> int:
        """The end of its log."""
        return int(self.ask("state").split()[0])

    def close(self) -> None:
        """Shut the store down and wait for the end of the process."""
        self.tell("close")
        self._line("closed")
        self._process.wait(30)

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.communicate(timeout=30)


@contextmanager
def java_node(
    release: Release, directory: Path, role: str, address: str, *, file_bytes: int, master: str = ""
) -> Iterator[JavaNode]:
    """Yield a running Java store; kill it afterwards."""
    port = int(address.rpartition(":")[2])
    node = JavaNode(release, directory, role, port=port, file_bytes=file_bytes, master=master)
    try:
        yield node
    finally:
        node.kill()
