"""The parts of a measurement: rounds, median, directory, and machine.

A round sets up, times one stretch of work, checks its result and cleans up. Only the stretch counts. The first round
warms up and is dropped. The figure is the median of the others, which are kept beside it.
"""

import os
import platform
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from tornpage.outcomes.doctor import MEMORY_FILE_SYSTEMS, check_file_system, mounts_text
from tornpage.properties.scratch import scratch_directory

__all__ = ["Figure", "Machine", "Skipped", "describe_machine", "figure", "file_system_of", "scratch"]

ROUNDS_MIN = 3


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number, the median of `rounds`; `file_system` is that of the directory."""

    name: str
    value: float
    unit: str
    rounds: tuple[float, ...]
    file_system: str


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine of the figures; `commit` is empty if the sources are no checkout."""

    processor: str
    cores: int
    kernel: str
    python: str
    file_system: str
    commit: str

    @property
    def is_memory_disk(self) -> bool:
        """Whether the directory is in memory, where a sync costs and proves nothing."""
        return self.file_system in MEMORY_FILE_SYSTEMS


class Skipped(Exception):
    """A figure that this machine cannot give; the message has the reason in one sentence."""


def figure(
    name: str,
    unit: str,
    one_round: Callable[[], float],
    *,
    directory: str,
    seconds: float,
    rounds_min: int = ROUNDS_MIN,
) -> Figure:
    """Repeat `one_round` for about `seconds`, at least `rounds_min` times after warm-up.

    `one_round` returns a value.
    """
    one_round()
    values: list[float] = []
    started = perf_counter()
    while len(values) < rounds_min or perf_counter() - started < seconds:
        values.append(one_round())
    return Figure(name, median(values), unit, tuple(values), file_system_of(directory))


@contextmanager
def scratch(directory: str) -> Iterator[str]:
    """Yield a new directory below `directory`, which is removed at the end in any case."""
    with scratch_directory("tornpage-bench-", below=directory) as path:
        yield path


def file_system_of(directory: str) -> str:
    """Return the file system type of `directory`, for example "ext4", or "unknown"."""
    check = check_file_system(directory, mounts_text())
    kind, found, _ = check.detail.partition(" at ")
    return kind if found else "unknown"


def describe_machine(directory: str) -> Machine:
    """Return the machine and the disk of figures that are taken now."""
    system = os.uname()
    return Machine(
        processor=_processor() or system.machine,
        cores=len(os.sched_getaffinity(0)),
        kernel=f"{system.sysname} {system.release}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        file_system=file_system_of(directory),
        commit=_commit(),
    )


def _processor() -> str:
    """Return the name of the processor, empty if unknown or without /proc."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _commit() -> str:
    home = Path(__file__).resolve().parent.parent
    try:
        run = subprocess.run(
            ["git", "-C", str(home), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""
