"""Test real faults on the real store: it holds, broken stores are caught, nothing is left."""

import functools
import os
import random
import re
import signal
import tempfile
import threading
from collections.abc import Callable
from multiprocessing.pool import Pool
from pathlib import Path

import pytest

from tornpage.impl.io.files import OpenFile
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.parts import Parts
from tornpage.properties.contract import GuaranteeBroken, HarnessError, Verdict
from tornpage.properties.explore.real_faults.children import Page, in_child
from tornpage.properties.explore.real_faults.full_disk import full_disk
from tornpage.properties.explore.real_faults.mounts import Unavailable
from tornpage.properties.explore.real_faults.report import FaultReport, FaultsReport
from tornpage.properties.explore.real_faults.run import FAULTS, run_faults
from tornpage.properties.explore.real_faults.sync_eio import sync_eio

Fault = Callable[[FaultReport, str, random.Random], None]


# ---- other stores, other faults --------------------------------------------------------------------------------------


class SparseFiles(OsFiles):
    """A disk that never reserves blocks, neither for the log nor for queues and index."""

    def allocate(self, file: OpenFile, size_bytes: int) -> None:
        os.truncate(file.path, size_bytes)


class TriesAgain(MappedFile):
    """A failed sync is repeated and trusted: dropped pages count as durable."""

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            self.failure = None
            super().flush()


class NeverSyncs(MappedFile):
    """A flush only moves the watermark, so that no failing sync is ever met."""

    def flush(self) -> None:
        self.flushed_position = self.written_position


def holds(report: FaultReport, directory: str, rng: random.Random) -> None:
    report.enabled, report.hit, report.effective = 1, 1, 1


def lacks(report: FaultReport, directory: str, rng: random.Random) -> None:
    raise Unavailable("no such disk")


def breaks(report: FaultReport, directory: str, rng: random.Random) -> None:
    report.enabled = 1
    raise GuaranteeBroken(2, "gone")


def errs(report: FaultReport, directory: str, rng: random.Random) -> None:
    raise HarnessError("our own")


def never_fires(report: FaultReport, directory: str, rng: random.Random) -> None:
    report.enabled = 1


def is_interrupted(report: FaultReport, directory: str, rng: random.Random) -> None:
    """Send an interrupt to the parent while a child waits forever."""

    def waits(page: Page) -> None:
        signal.alarm(0)
        os.kill(runner, signal.SIGINT)
        signal.pause()

    runner = os.getppid()
    in_child(Page(), waits)


KNOWN: dict[str, Fault] = {
    **FAULTS,
    "full-disk of sparse files": functools.partial(full_disk, files=SparseFiles),
    "sync-eio tried again": functools.partial(sync_eio, components=Parts({MappedFile: TriesAgain})),
    "sync-eio without syncs": functools.partial(sync_eio, components=Parts({MappedFile: NeverSyncs})),
    **{fault.__name__: fault for fault in (holds, lacks, breaks, errs, never_fires, is_interrupted)},
}


# ---- running in a fresh process --------------------------------------------------------------------------------------


def run_in_this_process(names: tuple[str, ...], seed: int, directory: str) -> FaultsReport:
    """Run faults of KNOWN, with a directory for temporary ones."""
    tempfile.tempdir = directory
    return run_faults(names, seed=seed, faults=KNOWN, progress=lambda name: None)


@pytest.fixture
def run(fresh_process: Pool, tmp_path: Path) -> Callable[..., FaultsReport]:
    """Return a function that runs faults in a process with one thread, below `tmp_path`."""

    def run_there(*names: str, seed: int = 0) -> FaultsReport:
        report = fresh_process.apply(run_in_this_process, (names, seed, str(tmp_path)))
        for fault in report.faults:
            if fault.skipped and fault.name.partition(" ")[0] in FAULTS:
                pytest.skip(fault.skipped)
        return report

    return run_there


Run = Callable[..., FaultsReport]


# ---- the store -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_the_store_holds_under_a_real_fault(run: Run, name: str, tmp_path: Path) -> None:
    mounts = Path("/proc/self/mountinfo").read_text()
    (fault,) = run(name).faults
    assert (fault.harness, str(fault.broken or "")) == ("", "")
    assert fault.verdict is Verdict.HOLDS
    assert fault.enabled == fault.hit == fault.effective >= 1
    assert fault.seen
    assert list(tmp_path.iterdir()) == []
    assert Path("/proc/self/mountinfo").read_text() == mounts


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(1, 21))
def test_the_store_holds_under_real_faults_of_many_seeds(run: Run, seed: int) -> None:
    report = run(*FAULTS, seed=seed)
    assert report.verdict is Verdict.HOLDS, [fault.row() for fault in report.faults]


def test_a_store_that_reserves_nothing_is_caught_on_a_full_disk(run: Run) -> None:
    # The first page without a block depends on the progress of dispatch when the disk is full. If it belongs to a
    # mapping, the process dies. If the log ends with its file, it is the page of the checkpoint at the close.
    (fault,) = run("full-disk of sparse files").faults
    assert fault.broken is not None
    assert fault.broken.contract == 8
    assert re.fullmatch(r"SIGBUS|clean exit not noted: .*No space left on device: .*/checkpoint'", fault.broken.found)


def test_a_store_that_tries_a_failed_sync_again_is_caught(run: Run) -> None:
    (fault,) = run("sync-eio tried again").faults
    assert fault.broken is not None
    assert (fault.broken.contract, fault.broken.found) == (9, "PUT_OK")
    assert (fault.enabled, fault.hit) == (1, 1)


def test_a_store_that_never_syncs_makes_the_run_vacuous_and_not_green(run: Run) -> None:
    (fault,) = run("sync-eio without syncs").faults
    assert (fault.enabled, fault.hit) == (1, 0)
    assert fault.verdict is not Verdict.HOLDS


# ---- the run ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "verdict"),
    [
        (("holds",), Verdict.HOLDS),
        (("holds", "lacks"), Verdict.HOLDS),
        (("lacks",), Verdict.VACUOUS),
        (("holds", "never_fires"), Verdict.VACUOUS),
        (("never_fires", "breaks", "holds"), Verdict.BROKEN),
        (("breaks", "errs"), Verdict.HARNESS),
    ],
)
def test_the_worst_verdict_counts(run: Run, names: tuple[str, ...], verdict: Verdict) -> None:
    report = run(*names)
    assert [fault.name for fault in report.faults] == list(names)
    assert (report.verdict, report.interrupted) == (verdict, False)


def test_what_ended_a_fault_is_told(run: Run) -> None:
    lacking, broken, ours = run("lacks", "breaks", "errs").faults
    assert (lacking.row()["verdict"], lacking.row()["reason"]) == ("skipped", "no such disk")
    assert (broken.row()["verdict"], broken.row()["contract"], broken.enabled) == ("broken", 2, 1)
    assert (ours.row()["verdict"], ours.row()["reason"]) == ("harness", "our own")


@pytest.mark.slow
def test_an_interrupt_ends_the_run_and_leaves_nothing(run: Run, tmp_path: Path) -> None:
    report = run("holds", "is_interrupted", "breaks")
    assert report.interrupted
    assert [fault.name for fault in report.faults] == ["holds"]
    assert list(tmp_path.iterdir()) == []


def run_beside_a_thread() -> str:
    """Return the report of a run in a process that has a second thread."""
    done = threading.Event()
    beside = threading.Thread(target=done.wait)
    beside.start()
    try:
        run_faults(("holds",), faults=KNOWN, progress=lambda name: None)
    except HarnessError as error:
        return str(error)
    finally:
        done.set()
        beside.join()
    return ""


@pytest.mark.slow
def test_a_process_with_threads_is_refused(fresh_process: Pool) -> None:
    assert "several threads" in fresh_process.apply(run_beside_a_thread)
