"""Nodes in processes of their own: `tornpage serve`."""

import ctypes
import json
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tornpage.impl.replication.tcp import TcpNetwork
from tornpage.impl.serving.client import Client
from tornpage.properties.contract import HarnessError

__all__ = ["NodeProcess", "ServedProcess", "free_address"]

_OPEN_S = 60.0
_CLOSE_S = 60.0
_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    """Let the kernel kill this process when the one that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def free_address() -> str:
    """Return an address of loopback at which nothing listens."""
    listener = TcpNetwork().listen("127.0.0.1:0")
    listener.close()
    return listener.address


class ServedProcess:
    """A running `tornpage serve`, which ends with the thread that started it.

    `address` is that of its clients. Its log goes to NAME.log beside the directory.

    Raises HarnessError if the process ends before it is ready.
    """

    def __init__(self, directory: Path, options: Sequence[str]) -> None:
        self.directory = directory
        self._log = directory.with_suffix(".log")
        command = [sys.executable, "-P", "-m", "tornpage", "serve", str(directory), "--json", *options]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                preexec_fn=_die_with_parent,  # a test host that is killed leaves no node
            )
        try:
            self.address: str = self._event("ready", _OPEN_S)["listen"]
        except BaseException:
            self.kill()
            raise

    def _event(self, name: str, seconds: float) -> dict[str, Any]:
        stream = self._process.stdout
        assert stream is not None
        line = stream.readline() if select.select([stream], [], [], seconds)[0] else b""
        if not line:
            last = self._log.read_text(errors="replace").splitlines()[-1:]
            raise HarnessError(f"a node was not {name!r} within {seconds:g} s: {''.join(last)}")
        event: dict[str, Any] = json.loads(line)
        if event.get("event") != name:
            raise HarnessError(f"a node printed {event} instead of {name!r}")
        return event

    @property
    def pid(self) -> int:
        """Return the id of the process."""
        return self._process.pid

    def client(self) -> Client:
        """Return a new connection to the node. Raises OSError."""
        return Client(self.address, timeout_s=_CLOSE_S)

    def status(self) -> dict[str, Any]:
        """Return the status of the node. Raises OSError."""
        with self.client() as client:
            return client.ask("status")

    def hang(self) -> None:
        """Stop all threads of the process with SIGSTOP, until `resume`."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a stopped process go on."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the process with SIGKILL. Idempotent."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def close(self) -> None:
        """Stop the process with SIGTERM. Raises HarnessError unless it ends cleanly."""
        self._process.terminate()
        try:
            self._event("closed", _CLOSE_S)
            self._process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired as error:
            raise HarnessError(f"a node did not end within {_CLOSE_S:g} s") from error
        finally:
            self.kill()
        if self._process.returncode:
            raise HarnessError(f"a node ended with exit code {self._process.returncode}")


class NodeProcess(ServedProcess):
    """A master or a slave. `ha_address` is that of its replicas."""

    def __init__(self, directory: Path, role: str, ha_address: str, *, master: str = "", options: Sequence[str] = ()):
        self.ha_address = ha_address
        roles = ["--role", role, "--ha-listen", ha_address, *(["--master", master] if master else [])]
        super().__init__(directory, [*roles, *options])
