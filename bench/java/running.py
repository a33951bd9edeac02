"""Alternate RocketMQ and our store, round by round, and keep the medians.

The JVM and this process live for the whole run. The first round of each row warms up and does not count. A row without
a sync has a new store for each round; reads use one store for all rounds; opens use copies of one store that tornpage
wrote, which both sides open.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from tornpage.bench.figures import Machine, describe_machine, scratch
from tornpage.bench.java.ours import Stretch, config_for, fill, measured, opened_in, write_to_recover
from tornpage.bench.java.shapes import FULL_WORK, LOG_FILE_BYTES, Shape, Work
from tornpage.front import MessageStore
from tornpage.peers.errors import PeerError, PeerUnavailable
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.process import Limits, Process
from tornpage.properties.contract import HarnessError

__all__ = ["BesideJava", "Row", "measure_beside"]

_ROUNDS_MIN = 3
_LIMITS = Limits(answer_s=300.0, heap_mib=1024, direct_mib=1024, optimizes=True)
_SETTINGS = {"osPageCacheBusyTimeOutMills": 60_000, "diskMaxUsedSpaceRatio": 95, "maxMessageSize": 4 << 20}
_OPENS_KILLED, _OPENS_CLEAN = "killed", "clean"


@dataclass(frozen=True, slots=True)
class Row:
    """A row: the rounds of both sides by turns, and what they measured."""

    shape: Shape
    theirs: tuple[Stretch, ...]
    ours: tuple[Stretch, ...]

    def document(self) -> dict[str, Any]:
        """Return medians and ratios; a ratio is our store divided by RocketMQ."""
        their_rate, our_rate = _rate(self.theirs), _rate(self.ours)
        their_cpu, our_cpu = _cpu_us(self.theirs), _cpu_us(self.ours)
        return {
            "name": self.shape.name,
            "what": self.shape.what,
            "unit": "opens/s" if self.shape.kind == "open" else "messages/s",
            "rocketmq_rate": their_rate,
            "tornpage_rate": our_rate,
            "rate_ratio": our_rate / their_rate,
            "rocketmq_cpu_us": their_cpu,
            "tornpage_cpu_us": our_cpu,
            "cpu_ratio": our_cpu / their_cpu if their_cpu else None,
            "rounds": len(self.ours),
        }


def _rate(stretches: Sequence[Stretch]) -> float:
    return median(each.items / each.seconds for each in stretches)


def _cpu_us(stretches: Sequence[Stretch]) -> float:
    return median(each.cpu_s / each.items * 1e6 for each in stretches)


@dataclass
class BesideJava:
    """The rows of a run. `failed` names rows that failed, with the reason."""

    peer: str
    machine: Machine
    rows: list[Row] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False


def measure_beside(
    release: Release,
    shapes: Sequence[Shape],
    directory: str,
    *,
    seconds: float,
    work: Work = FULL_WORK,
    progress: Callable[[str], None] = lambda name: None,
) -> BesideJava:
    """Measure rows below an existing directory, each for about `seconds`.

    Each has three rounds at least. A keyboard interrupt ends the run and keeps its rows. Raises PeerUnavailable.
    """
    result = BesideJava(f"rocketmq:{release.version}", describe_machine(directory))
    try:
        with Process(release, _LIMITS) as process, scratch(directory) as base:
            sides = _Sides(process, Path(base), work)
            for shape in shapes:
                progress(shape.name)
                try:
                    result.rows.append(_row(sides, shape, seconds))
                except PeerUnavailable:
                    raise
                except (PeerError, HarnessError) as error:
                    result.failed[shape.name] = str(error)
                    process.close()
    except KeyboardInterrupt:
        result.interrupted = True
    return result


def _row(sides: "_Sides", shape: Shape, seconds: float) -> Row:
    theirs: list[Stretch] = []
    ours: list[Stretch] = []
    with sides.prepared(shape):
        began = 0.0
        while len(ours) <= _ROUNDS_MIN or perf_counter() - began < seconds:
            theirs.append(sides.of_peer(shape))
            ours.append(sides.of_ours(shape))
            began = began or perf_counter()  # the first round warms up
    return Row(shape, tuple(theirs[1:]), tuple(ours[1:]))


class _Sides:
    """Both sides below one directory."""

    def __init__(self, process: Process, base: Path, work: Work) -> None:
        self._process = process
        self._base = base
        self._work = work
        self._end = 0
        self._held: MessageStore | None = None

    @contextmanager
    def prepared(self, shape: Shape) -> Iterator[None]:
        """Hold the stores that all rounds of a row use."""
        count = shape.count(self._work)
        theirs, ours = self._base / "theirs", self._base / "ours"
        try:
            if shape.kind in {"pull", "query"}:
                self._open(theirs)
                self._ask("put", shape, count)
                self._held = MessageStore.open(ours, config_for(verify_reads="once"))
                fill(self._held, shape, count)
            elif shape.kind == "open" and not (self._base / _OPENS_CLEAN).exists():
                self._write_to_recover()
            yield
        finally:
            if self._held is not None:
                self._held.close()
                self._held = None
                self._process.close()
            for path in (theirs, ours):
                shutil.rmtree(path, ignore_errors=True)

    def _write_to_recover(self) -> None:
        """Write the store that is opened, and copy its files before the close, as a kill."""
        clean, killed = self._base / _OPENS_CLEAN, self._base / _OPENS_KILLED
        file_bytes = self._work.recover_file_bytes
        with MessageStore.open(clean, config_for(file_bytes=file_bytes)) as store:
            self._end = write_to_recover(store, self._work.recover_bytes)
            shutil.copytree(clean, killed)

    def of_peer(self, shape: Shape) -> Stretch:
        """Carry out a round with RocketMQ."""
        count, directory = shape.count(self._work), self._base / "theirs"
        if shape.kind in {"pull", "query"}:
            return self._ask(shape.kind, shape, count)
        if shape.kind == "open":
            return self._opened_by_peer(shape, directory)
        self._open(directory, sync=shape.kind == "sync")
        stretch = self._ask(shape.kind, shape, count)
        self._process.ask("close")
        shutil.rmtree(directory)
        return stretch

    def _opened_by_peer(self, shape: Shape, directory: Path) -> Stretch:
        self._copy(shape, directory)
        answer = self._open(directory, file_bytes=self._work.recover_file_bytes)
        end = self._process.ask("log")["max"]
        self._process.ask("close")
        shutil.rmtree(directory)
        if end != self._end:
            raise HarnessError(f"RocketMQ's log ends at {end} instead of {self._end}")
        return Stretch(1, answer["seconds"], answer["cpu"])

    def of_ours(self, shape: Shape) -> Stretch:
        """Carry out a round with our store."""
        count, directory = shape.count(self._work), self._base / "ours"
        if self._held is not None:
            return measured(self._held, shape, count)
        if shape.kind == "open":
            self._copy(shape, directory)
            stretch = opened_in(str(directory), file_bytes=self._work.recover_file_bytes, end=self._end)
        else:
            with MessageStore.open(directory, config_for(sync=shape.kind == "sync")) as store:
                stretch = measured(store, shape, count)
        shutil.rmtree(directory)
        return stretch

    def _copy(self, shape: Shape, directory: Path) -> None:
        shutil.copytree(self._base / (_OPENS_KILLED if shape.killed else _OPENS_CLEAN), directory)

    def _open(self, directory: Path, *, sync: bool = False, file_bytes: int = LOG_FILE_BYTES) -> dict[str, Any]:
        """Open a stock store. Raises PeerError, HarnessError."""
        settings = {
            **_SETTINGS,
            "mappedFileSizeCommitLog": file_bytes,
            "flushDiskType": "SYNC_FLUSH" if sync else "ASYNC_FLUSH",
        }
        directory.mkdir(exist_ok=True)
        answer = self._process.ask("open", directory=str(directory), mode="stock", settings=settings)
        if not answer["loaded"]:
            raise HarnessError(f"RocketMQ does not start: {answer['reason']}")
        return answer

    def _ask(self, what: str, shape: Shape, count: int) -> Stretch:
        answer = self._process.ask(
            "bench", what=what, count=count, bytes=shape.body_bytes, window=shape.window, passes=shape.passes,
            decoded=shape.decoded,
        )  # fmt: skip
        return Stretch(answer["count"], answer["seconds"], answer["cpu"])
