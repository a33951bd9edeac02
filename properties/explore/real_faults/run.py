"""Run the faults, each in a stage: a process with its own mounts, which end with it.

The parent mounts nothing. It creates one empty directory as the mount point, waits, and removes it again. An
interrupted run kills its stage, and the kernel removes the mounts. Concurrent runs share nothing.
"""

import os
import random
from collections.abc import Callable, Sequence
from time import perf_counter

from tornpage.properties.contract import GuaranteeBroken, HarnessError
from tornpage.properties.explore.real_faults.children import Page, in_child
from tornpage.properties.explore.real_faults.full_disk import full_disk
from tornpage.properties.explore.real_faults.mounts import Unavailable, enter_private_mounts
from tornpage.properties.explore.real_faults.report import FaultReport, FaultsReport
from tornpage.properties.explore.real_faults.short_write import short_write
from tornpage.properties.explore.real_faults.sparse_sigbus import sparse_sigbus
from tornpage.properties.explore.real_faults.sync_eio import sync_eio
from tornpage.properties.scratch import scratch_directory

__all__ = ["FAULTS", "run_faults"]

Fault = Callable[[FaultReport, str, random.Random], None]
"""Carries out one fault below an empty directory, with draws from a seed, and writes down what happened. Raises
GuaranteeBroken, Unavailable or HarnessError."""

FAULTS: dict[str, Fault] = {
    "full-disk": full_disk,
    "sparse-sigbus": sparse_sigbus,
    "sync-eio": sync_eio,
    "short-write": short_write,
}
"""In the order in which they run."""

_WITHOUT_MOUNTS = frozenset({"short-write"})
"""These need only a directory on any disk."""
_COUNTS = ("enabled", "hit", "effective", "seen")


def run_faults(
    names: Sequence[str] = (), *, seed: int = 0, faults: dict[str, Fault] | None = None, progress: Callable[[str], None]
) -> FaultsReport:
    """Run the named faults, or all. An interrupt ends the run and keeps the results so far.

    Raises HarnessError in a process with several threads, which must not fork.
    """
    if len(os.listdir("/proc/self/task")) > 1:
        raise HarnessError("this process has several threads; fork from one that has a single thread")
    known = FAULTS if faults is None else faults
    report = FaultsReport(seed)
    try:
        with scratch_directory("tornpage-faults-") as base:  # the mounts of a stage are in another mount namespace
            for name in names or known:
                progress(name)
                report.faults.append(_on_stage(name, known[name], seed, base))
    except KeyboardInterrupt:
        report.interrupted = True
    return report


def _on_stage(name: str, fault: Fault, seed: int, base: str) -> FaultReport:
    """Run one fault in a process of its own."""
    report, page, started = FaultReport(name), Page(), perf_counter()

    def stage(page: Page) -> None:
        try:
            enter_private_mounts(base)
        except Unavailable:
            if name not in _WITHOUT_MOUNTS:
                raise
        try:
            fault(report, base, random.Random(f"faults {seed} {name}"))
        finally:
            page.tell(**{count: getattr(report, count) for count in _COUNTS})

    try:
        ending = in_child(page, stage, hang_seconds=0)  # the processes that it forks have their own limit
        if ending.signal is not None:
            raise HarnessError(f"the stage died by {ending.signal}")
    except GuaranteeBroken as broken:
        report.broken = broken
    except Unavailable as missing:
        report.skipped = str(missing)
    except HarnessError as error:
        report.harness = str(error)
    told = page.facts
    for count in _COUNTS:
        setattr(report, count, told.get(count, getattr(report, count)))
    report.seconds = perf_counter() - started
    return report
