"""Measure processor time and memory of this process and all its descendants.

A process that loses its parent is adopted by this process (`PR_SET_CHILD_SUBREAPER`), which waits for it. So no
processor time is lost when a JVM ends after the command that started it. A parent that ignores SIGCHLD does not get the
times of its children. The daemon of Spark's workers is such a parent. The times of its children are those of their last
sample. Processor time has a resolution of 10 ms. The time that taking samples needs is subtracted.

Source: prctl(2), proc(5).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

__all__ = ["Spent", "Tree", "processes", "watched_tree"]

_PR_SET_CHILD_SUBREAPER = 36
_EVERY_S = 0.3
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_JAVA = "java"


class Process(NamedTuple):
    """One process.

    `own_s` is its processor time, `reaped_s` that of the children it has waited for.
    """

    pid: int
    parent: int
    name: str
    own_s: float
    reaped_s: float


@dataclass(frozen=True, slots=True)
class Spent:
    """What a stretch of work took, in all processes.

    `jvm_s` is the processor time of Java processes, `workers_s` that of their descendants, and `driver_s` the rest.
    `peak_bytes` is the largest sum of proportional set sizes, where a page shared by n processes counts 1/n in each.
    """

    wall_s: float
    driver_s: float
    jvm_s: float
    workers_s: float
    peak_bytes: int

    @property
    def cpu_s(self) -> float:
        """Return the processor time of all processes."""
        return self.driver_s + self.jvm_s + self.workers_s


def processes(root: int) -> dict[int, Process]:
    """Return a process and its descendants, by pid."""
    known: dict[int, Process] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                found = _process(Path("/proc", entry, "stat").read_text(errors="replace"))
                known[found.pid] = found
    children: dict[int, list[int]] = {}
    for each in known.values():
        children.setdefault(each.parent, []).append(each.pid)
    tree, left = dict[int, Process](), [root]
    while left:
        pid = left.pop()
        if pid in known:
            tree[pid] = known[pid]
            left += children.get(pid, ())
    return tree


def _process(stat: str) -> Process:
    before, _, after = stat.rpartition(")")
    pid, _, name = before.partition(" (")
    fields = after.split()
    user, system, reaped_user, reaped_system = (int(each) * _TICK_S for each in fields[11:15])
    return Process(int(pid), int(fields[1]), name, user + system, reaped_user + reaped_system)


class Tree:
    """The processes below this one, sampled by a thread."""

    def __init__(self, *, every_s: float = _EVERY_S) -> None:
        self._every_s = every_s
        self._root = os.getpid()
        self._sampling_s = 0.0
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._peak_bytes = 0
        self._most: dict[str, float] = {}
        self._first: dict[str, float] = {}
        self._parents: dict[int, int] = {}
        self._before: dict[int, tuple[Process, str]] = {}
        self._lost = {"driver": 0.0, "jvm": 0.0, "workers": 0.0}

    @contextlib.contextmanager
    def sampled(self) -> Iterator[Tree]:
        """Sample until the context ends."""
        thread = threading.Thread(target=self._run, name="tree", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            thread.join()

    def spent(self, work: Callable[[], object]) -> Spent:
        """Do the work; return what it took."""
        with self._lock:
            self._peak_bytes, self._most = 0, {}
            self._first = self._sample()
            sampling_s = self._sampling_s
            started = time.perf_counter()
        work()
        wall_s = time.perf_counter() - started
        with self._lock:
            last = self._sample()
            cpu_s = last["all"] - self._first["all"] - (self._sampling_s - sampling_s)
            jvm_s, workers_s = (self._most[role] - self._first[role] for role in ("jvm", "workers"))
            return Spent(wall_s, max(0.0, cpu_s - jvm_s - workers_s), jvm_s, workers_s, self._peak_bytes)

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            with self._lock:
                self._sample()

    def _sample(self) -> dict[str, float]:
        """Wait for ended orphans; return the processor times by role, and keep the largest values."""
        started = time.thread_time()
        tree = processes(self._root)
        self._reap(tree)
        tree = processes(self._root)
        roles = self._roles(tree)
        for role, seconds in roles.items():
            self._most[role] = max(seconds, self._most.get(role, 0.0))
        self._peak_bytes = max(self._peak_bytes, sum(map(_pss_bytes, tree)))
        self._sampling_s += time.thread_time() - started
        return roles

    def _reap(self, tree: dict[int, Process]) -> None:
        """Wait for processes that this process adopted and that have ended.

        Processes that this process started itself are waited for by the code that started them.
        """
        for pid, each in tree.items():
            before = self._parents.setdefault(pid, each.parent)
            if each.parent == self._root and before != self._root:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
        for pid in self._parents.keys() - tree.keys():
            del self._parents[pid]

    def _roles(self, tree: dict[int, Process]) -> dict[str, float]:
        for pid in self._before.keys() - tree.keys():
            ended, role = self._before[pid]
            if ended.parent in tree and _ignores_children(ended.parent):
                self._lost[role] += ended.own_s + ended.reaped_s
        self._before = {pid: (each, _role(each, tree)) for pid, each in tree.items()}
        roles = dict(self._lost)
        for each, role in self._before.values():
            roles[role] += each.own_s
            roles["workers" if role == "jvm" else role] += each.reaped_s
        return {**roles, "all": sum(roles.values())}


def _role(process: Process, tree: dict[int, Process]) -> str:
    if process.name == _JAVA:
        return "jvm"
    return "workers" if any(above.name == _JAVA for above in _ancestors(process, tree)) else "driver"


def _ignores_children(pid: int) -> bool:
    """Return whether a process ignores SIGCHLD."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return False
    ignored = int(status.partition("SigIgn:")[2].split()[0], 16)
    return bool(ignored >> (signal.SIGCHLD - 1) & 1)


def _ancestors(process: Process, tree: dict[int, Process]) -> Iterator[Process]:
    while (above := tree.get(process.parent)) is not None:
        yield above
        process = above


def _pss_bytes(pid: int) -> int:
    """Return the proportional set size of a process, 0 if it has ended."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


@contextlib.contextmanager
def watched_tree(*, every_s: float = _EVERY_S) -> Iterator[Tree]:
    """Adopt orphans and sample the tree until the context ends."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        with Tree(every_s=every_s).sampled() as tree:
            yield tree
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
