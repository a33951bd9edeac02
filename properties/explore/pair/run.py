"""Kill either process of a pair while puts wait, and look for acknowledged messages.

After a kill of the slave the slave starts again. After a kill of the master either the master starts again, or the
slave is promoted and the old master starts as its slave. Then the pair has to become equal, and every message that was
ever acknowledged has to be in the log of the master. At the end both processes close cleanly, and their logs are
compared byte for byte.

A process kill leaves the page cache, so this says nothing about power losses (`explore cluster` does).
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tornpage.properties.cluster.served_process import NodeProcess, free_address
from tornpage.properties.contract import HarnessError
from tornpage.properties.explore.pair.producer import Producer
from tornpage.properties.scratch import memory_directory, scratch_directory

__all__ = ["PairReport", "run_pair"]

_FILE_BYTES = 256 << 10
_ANSWERS_BEFORE_KILL = 100
_LIVES_S = 0.05
_PATIENCE_S = 60.0
_LOOK_S = 0.002
_READ_MAX = 500
_ROLES = ("SYNC_MASTER", "ASYNC_MASTER")


@dataclass
class PairReport:
    """The result: what was killed, what was answered, and what is missing.

    `unequal` is a sentence if the logs differ at the end, else an empty text.
    """

    kills: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    lost: list[int] = field(default_factory=list)
    unequal: str = ""
    log_bytes: int = 0
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def is_vacuous(self) -> bool:
        """Whether a kind of kill never happened, or too few puts were acknowledged."""
        return len(self.kills) < 3 or self.acknowledged < _ANSWERS_BEFORE_KILL


def run_pair(
    kills: int, *, seed: int, role: str = "SYNC_MASTER", directory: str | None, progress: Callable[[int], None]
) -> PairReport:
    """Run a pair in a new directory, kill `kills` times, and judge; stop at the first loss.

    With the role ASYNC_MASTER acknowledged messages may be lost at a promotion, so a run should report some. Raises
    HarnessError and OSError.
    """
    assert role in _ROLES
    report, began = PairReport(), time.monotonic()
    with scratch_directory("tornpage-pair-", below=directory or memory_directory()) as place:
        run = _Pair(Path(place), role, random.Random(seed), report)
        try:
            for number in range(kills):
                run.kill_one()
                progress(number + 1)
                if report.lost:
                    break
            run.end()
        except KeyboardInterrupt:
            report.interrupted = True
        finally:
            run.stop()
    report.seconds = time.monotonic() - began
    return report


class _Pair:
    """Two nodes, a producer, and what was acknowledged."""

    def __init__(self, place: Path, role: str, rng: random.Random, report: PairReport) -> None:
        self._role = role
        self._rng = rng
        self._report = report
        self._acknowledged: set[int] = set()
        self._present: set[int] = set()
        self._read_to = 0
        self._next = 0
        self._nodes: list[NodeProcess] = []
        self._producer: Producer | None = None
        master = self._start(place / "one", role, free_address())
        self._nodes = [master]
        self._nodes.append(self._start(place / "two", "SLAVE", free_address(), master.ha_address))
        self._await_equal()

    def _start(self, directory: Path, role: str, ha_address: str, master: str = "") -> NodeProcess:
        values = {
            "mapped_file_size_commit_log": _FILE_BYTES,
            "reconnect_interval": 20,
            "slave_timeout": 2_000,
            "os_page_cache_busy_time_out_mills": 60_000,
        }
        options = [text for name, value in values.items() for text in ("--set", f"{name}={value}")]
        return NodeProcess(directory, role, ha_address, master=master, options=options)

    # ---- one kill ------------------------------------------------------------------------------------------------

    def kill_one(self) -> None:
        """Put, kill one process, bring the pair back, and look for the acknowledged messages."""
        master, slave = self._nodes
        self._producer = producer = Producer(master.client(), self._next)
        self._await(lambda: len(producer.acknowledged) >= _ANSWERS_BEFORE_KILL, "answers of puts")
        time.sleep(self._rng.uniform(0, _LIVES_S))
        what = self._rng.choice(("slave", "master restarted", "slave promoted"))
        self._report.kills[what] += 1
        if what == "slave":
            slave.kill()
            self._nodes[1] = self._start(slave.directory, "SLAVE", slave.ha_address, master.ha_address)
            self._stop_producer()
        else:
            master.kill()
            self._stop_producer()
            self._recover(what)
        self._await_equal()
        self._judge()

    def _recover(self, what: str) -> None:
        master, slave = self._nodes
        if what == "slave promoted":
            with slave.client() as client:
                answer = client.ask("become", role=self._role)
            if not answer["ok"]:
                raise HarnessError(f"the slave was not promoted: {answer}")
            self._read_to, self._present = 0, set()  # its log may lack what the old master had
            self._nodes = [slave, self._start(master.directory, "SLAVE", master.ha_address, slave.ha_address)]
        else:
            self._nodes[0] = self._start(master.directory, self._role, master.ha_address)

    def _stop_producer(self) -> None:
        if (producer := self._producer) is not None:
            producer.stop()
            self._next = producer.next
            self._acknowledged.update(producer.acknowledged)
            self._report.answers.update(producer.answers)
            self._producer = None

    def _await_equal(self) -> None:
        def is_equal() -> bool:
            master, slave = (node.status() for node in self._nodes)
            return any(each["counts"] for each in master["replicas"]) and master["max_offset"] == slave["max_offset"]

        self._await(is_equal, "equal logs")

    def _await(self, holds: Callable[[], bool], what: str) -> None:
        limit = time.monotonic() + _PATIENCE_S
        while not holds():
            if time.monotonic() > limit:
                raise HarnessError(f"waited {_PATIENCE_S:g} s for {what}")
            time.sleep(_LOOK_S)

    # ---- judging -------------------------------------------------------------------------------------------------

    def _judge(self) -> None:
        """Read the new messages of the master, and note each acknowledged one that is missing."""
        with self._nodes[0].client() as client:
            self._await(lambda: client.ask("status")["dispatch_behind_bytes"] == 0, "dispatch")
            while True:
                answer = client.ask("get", topic="pair", offset=self._read_to, max=_READ_MAX)
                if not answer["messages"]:
                    break
                self._present.update(int(each["body"][:9]) for each in answer["messages"])
                self._read_to = answer["next"]
        self._report.acknowledged = len(self._acknowledged)
        self._report.lost = sorted(self._acknowledged - self._present)

    def end(self) -> None:
        """Close both nodes, the slave last, and compare their logs."""
        for node in self._nodes:
            node.close()
        ours, theirs = (_log_of(node.directory) for node in self._nodes)
        self._report.log_bytes = sum(map(len, ours.values()))
        if ours != theirs:
            names = [name for name in sorted(ours.keys() | theirs.keys()) if ours.get(name) != theirs.get(name)]
            self._report.unequal = f"the logs of both nodes differ in {', '.join(names)}"

    def stop(self) -> None:
        """Kill whatever still runs."""
        for node in self._nodes:
            node.kill()
        if self._producer is not None:
            self._producer.stop()


def _log_of(directory: Path) -> dict[str, bytes]:
    """Return the files of a log that have records.

    A file that was allocated ahead is all zero, and may be there on one side only.
    """
    found = {path.name: path.read_bytes() for path in sorted((directory / "commitlog").iterdir())}
    return {name: data for name, data in found.items() if any(data[:8])}
