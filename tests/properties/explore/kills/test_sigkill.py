"""Kill real processes with SIGKILL: the store loses nothing, and broken stores are caught.

Killing forks, which a process with threads must not do. The processes of pytest-xdist have threads, so each run gets a
fresh process.
"""

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.pool import Pool
from pathlib import Path
from typing import NoReturn

import pytest

from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.message.message import Message, PutResult
from tornpage.impl.parts import Parts
from tornpage.impl.recovery.opening import AbortMarker
from tornpage.impl.recovery.recovery import Recovery, RecoveryPlan
from tornpage.properties.contract import HarnessError, Verdict
from tornpage.properties.explore.kills.program import TOGETHER, VIOLATIONS_MAX
from tornpage.properties.explore.kills.run import KILL_SETTINGS, KillMode, KillResult, replay_kill, run_kills
from tornpage.properties.planted import PLANTED

Runner = Callable[..., KillResult]


# ---- other stores ----------------------------------------------------------------------------------------------------


class WriteBuffer(MappedFile):
    """Records wait in a buffer of the process until a flush, as with a transient store pool."""

    _waiting: tuple[tuple[int, bytes], ...] = ()

    def append(self, record: bytearray) -> None:
        self._waiting += ((self.written_position, bytes(record)),)
        self._files.mark("record")
        self.written_position += len(record)

    def flush(self) -> None:
        for position, record in self._waiting:
            self.view[position : position + len(record)] = record
        self._waiting = ()
        super().flush()


class TornCopy(MappedFile):
    """A record is copied in two steps, so that a kill can fall between them.

    It is correct as long as recovery is.
    """

    def append(self, record: bytearray) -> None:
        half = len(record) // 2
        self.view[self.written_position : self.written_position + half] = record[:half]
        self._files.mark("half")
        super().append(record)


class MarkerForgotten(AbortMarker):
    """There is no abort marker."""

    def create(self) -> None:
        """Omit the marker."""


class RaisingPut(CommitLog):
    """A put raises."""

    def put(self, message: Message, *, now_ms: int) -> PutResult:
        raise RuntimeError("not today")


class DyingPut(CommitLog):
    """A put ends the process."""

    def put(self, message: Message, *, now_ms: int) -> NoReturn:
        os.abort()


class DyingInOnePlace(MappedFile):
    """A copy into a log ends the process, in the directory of the fifth of nine sessions."""

    def append(self, record: bytearray) -> None:
        if "-4/commitlog" in self.path:
            os.abort()
        super().append(record)


class InterruptedRecovery(Recovery):
    """An open of the store sends Ctrl-C to the process that runs the kills.

    It does not if it is that process.
    """

    runner = 0

    def carry_out(self, plan: RecoveryPlan) -> None:
        if os.getpid() != self.runner:
            os.kill(self.runner, signal.SIGINT)
        super().carry_out(plan)


class MurderedZygote(CommitLog):
    """A put ends the process that has forked this one."""

    def put(self, message: Message, *, now_ms: int) -> PutResult:
        os.kill(os.getppid(), signal.SIGKILL)
        return super().put(message, now_ms=now_ms)


STORES = {
    "torn-copy": Parts({MappedFile: TornCopy}),
    "torn-copy-not-erased": PLANTED["no-erase-after-cut"].parts.replacing({MappedFile: TornCopy}),
    "write-buffer": Parts({MappedFile: WriteBuffer}),
    "marker-forgotten": Parts({AbortMarker: MarkerForgotten}),
    "raising-put": Parts({CommitLog: RaisingPut}),
    "dying-put": Parts({CommitLog: DyingPut}),
    "dying-in-one-place": Parts({MappedFile: DyingInOnePlace}),
    "interrupted-recovery": Parts({Recovery: InterruptedRecovery}),
    "murdered-zygote": Parts({CommitLog: MurderedZygote}),
}


MODES = ["step", pytest.param("bytecode", marks=pytest.mark.slow)]
"""Both ways to choose the place of a kill. A kill at a bytecode traces the whole session."""

_PATIENCE_S = 240
"""A dead process never answers: the test fails then instead of waiting forever."""


# ---- running in a fresh process --------------------------------------------------------------------------------------


def run_in_this_process(
    count: int,
    seed: int,
    mode: KillMode,
    directory: str,
    bug: str,
    store: str,
    cycle: int | None,
    workers: int,
    together: int,
) -> KillResult:
    """Run or replay kills; `store` names one of STORES."""
    InterruptedRecovery.runner = os.getpid()
    settings, components = replace(KILL_SETTINGS, bug=bug), STORES.get(store)
    if cycle is not None:
        return replay_kill(seed, cycle, mode=mode, directory=directory, settings=settings, components=components)
    return run_kills(
        count,
        seed=seed,
        mode=mode,
        directory=directory,
        settings=settings,
        components=components,
        workers=workers,
        together=together,
    )


@pytest.fixture(scope="module")
def fresh_process() -> Iterator[Pool]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        yield pool


def runs_in(fresh_process: Pool, directory: Path) -> Runner:
    """Return what runs kills below a directory, in a process with one thread."""

    def run_kills_there(
        count: int,
        *,
        seed: int = 1,
        mode: KillMode = "step",
        bug: str = "",
        store: str = "",
        cycle: int | None = None,
        workers: int = 1,
        together: int = TOGETHER,
    ) -> KillResult:
        arguments = (count, seed, mode, str(directory), bug, store, cycle, workers, together)
        return fresh_process.apply_async(run_in_this_process, arguments).get(timeout=_PATIENCE_S)

    return run_kills_there


@pytest.fixture
def run(fresh_process: Pool, tmp_path: Path) -> Runner:
    """Return what runs kills below `tmp_path`."""
    return runs_in(fresh_process, tmp_path)


@pytest.fixture(scope="module")
def fifty(fresh_process: Pool, tmp_path_factory: pytest.TempPathFactory) -> KillResult:
    """Return the result of 50 cycles of seed 8, with which several tests compare."""
    return runs_in(fresh_process, tmp_path_factory.mktemp("fifty"))(50, seed=8)


@pytest.fixture(scope="module")
def buffered(fresh_process: Pool, tmp_path_factory: pytest.TempPathFactory) -> KillResult:
    """Return the result of 60 cycles of a store that keeps records in a buffer."""
    return runs_in(fresh_process, tmp_path_factory.mktemp("buffered"))(60, store="write-buffer")


def signature(report: KillResult) -> tuple[object, ...]:
    """Return the parts of a report that the seed determines."""
    found = [(v.cycle, v.life, v.verb, v.step, v.contract) for v in report.tally.violations]
    counts = (
        report.tally.cycles,
        report.tally.lives,
        report.tally.killed,
        report.tally.completed,
        len(report.tally.outcomes),
    )
    return (report.tally.points, report.tally.outcomes, report.tally.killed_in, found, *counts)


# ---- the store holds -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_kill_loses_nothing(run: Runner, mode: KillMode, tmp_path: Path) -> None:
    report = run(60, mode=mode)
    assert not report.tally.violations
    assert (report.tally.cycles, report.verdict, report.interrupted) == (60, Verdict.HOLDS, False)
    assert report.tally.killed + report.tally.completed == report.tally.lives > 60, (
        "some directories have more than one life"
    )
    assert report.tally.killed >= 60
    assert len(report.tally.points) > 50
    assert 20 < report.tally.judged < 60 + 3, "what is left again, byte for byte, is known"
    assert {"open", "put", "close"} <= set(report.tally.killed_in)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.deep
@pytest.mark.parametrize("mode", ["step", "bytecode"])
def test_a_thousand_kills_lose_nothing(run: Runner, mode: KillMode, tmp_path: Path) -> None:
    report = run(1_000, seed=2, mode=mode)
    assert not report.tally.violations
    assert report.tally.killed >= 1_000
    assert len(report.tally.points) > 700
    assert len(report.tally.outcomes) > 300
    assert {"open", "put", "flush", "close"} <= set(report.tally.killed_in)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_kill_within_a_copy_loses_nothing_either(run: Runner) -> None:
    report = run(60, store="torn-copy")
    assert (report.verdict, report.tally.violations) == (Verdict.HOLDS, [])


# ---- determinism -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["step", "bytecode"])
def test_equal_seeds_kill_at_equal_points(run: Runner, mode: KillMode) -> None:
    first, second = run(30, seed=5, mode=mode), run(30, seed=5, mode=mode)
    assert signature(first) == signature(second)
    assert run(30, seed=6, mode=mode).tally.points != first.tally.points


@pytest.mark.slow
def test_any_number_of_workers_reports_the_same(run: Runner, fifty: KillResult, tmp_path: Path) -> None:
    report = run(50, seed=8, workers=2)
    assert signature(report) == signature(fifty)
    assert report.result_hash == fifty.result_hash != run(5, seed=9).result_hash
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("together", [1, 4, 25])
def test_sessions_that_end_together_leave_what_they_leave_alone(
    run: Runner, fifty: KillResult, together: int, tmp_path: Path
) -> None:
    assert signature(run(50, seed=8, together=together)) == signature(fifty)
    assert list(tmp_path.iterdir()) == []


def test_a_session_that_ends_its_process_leaves_the_verdicts_of_the_others(run: Runner) -> None:
    report = run(18, seed=8, store="dying-in-one-place")
    assert {violation.cycle for violation in report.tally.violations} == {4, 13}
    assert {violation.contract for violation in report.tally.violations} == {7}
    assert report.tally.cycles == 18
    others = {point for point in run(18, seed=8).tally.points if point.life == 0}
    assert len([point for point in report.tally.points if point in others]) >= 14


@pytest.mark.slow
def test_a_store_that_dies_in_every_session_is_named_in_each_of_them(run: Runner) -> None:
    alone, together = (run(9, seed=8, store="dying-put", together=number) for number in (1, 9))
    assert signature(together) == signature(alone)
    assert together.tally.violations


@pytest.mark.slow
def test_workers_keep_the_same_violations_and_nothing_else(run: Runner, tmp_path: Path) -> None:
    alone = run(75, seed=3, bug="floor-ahead")
    kept = {Path(violation.kept).name for violation in alone.tally.violations}
    shutil.rmtree(next(tmp_path.iterdir()))
    several = run(75, seed=3, bug="floor-ahead", workers=3)
    assert len(alone.tally.violations) >= VIOLATIONS_MAX, (
        "the last programs are not reported, and nothing of them is kept"
    )
    assert signature(several) == signature(alone)
    assert several.result_hash == alone.result_hash
    (base,) = tmp_path.iterdir()
    assert {path.name for path in base.iterdir()} == kept


@pytest.mark.slow
def test_one_cycle_can_be_replayed(run: Runner) -> None:
    report = run(60, seed=3, bug="dropped-first-page")
    violation = next(violation for violation in report.tally.violations if violation.cycle >= 0)
    replayed = run(0, seed=3, bug="dropped-first-page", cycle=violation.cycle)
    assert replayed.tally.cycles == 1
    assert [replace(v, kept="") for v in replayed.tally.violations] == [replace(violation, kept="")]


def test_a_store_with_bit_maps_is_killed_and_opened_with_its_filters(run: Runner) -> None:
    """Sessions and judges had no filters once.

    The fifteenth program of this seed has an extension with bit maps.
    """
    report = run(0, seed=0, cycle=350)
    assert (report.tally.cycles, report.tally.violations) == (1, [])


# ---- broken stores are caught ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bug", "contracts"), [("dropped-first-page", {1, 2}), ("floor-ahead", {7})], ids=["dropped-first-page", "floor"]
)
def test_a_planted_bug_is_caught(run: Runner, bug: str, contracts: set[int]) -> None:
    report = run(80, bug=bug)
    assert report.verdict is Verdict.BROKEN
    assert contracts & {violation.contract for violation in report.tally.violations}


@pytest.mark.parametrize("mode", MODES)
def test_records_kept_in_a_buffer_are_missed(run: Runner, buffered: KillResult, mode: KillMode) -> None:
    report = buffered if mode == "step" else run(60, mode=mode, store="write-buffer")
    # Dispatch finds no record where one was put: no more puts are taken then (8), and no exit is clean (7).
    assert 2 in {violation.contract for violation in report.tally.violations} <= {2, 7, 8}
    assert "records that had to survive" in report.tally.violations[0].sentence


@pytest.mark.parametrize(
    ("store", "contract", "sentence"),
    [
        ("marker-forgotten", 7, "the abort marker is wrong"),
        ("raising-put", 8, "raises RuntimeError: not today"),
        ("torn-copy-not-erased", 3, "a byte that recovery cut is still"),
        ("dying-put", 7, "died by SIGABRT"),
    ],
)
def test_a_store_that_breaks_another_promise_is_named(run: Runner, store: str, contract: int, sentence: str) -> None:
    report = run(60, store=store)
    assert [v for v in report.tally.violations if v.contract == contract and sentence in v.sentence]


def test_a_violation_keeps_what_the_kill_left(buffered: KillResult, tmp_path_factory: pytest.TempPathFactory) -> None:
    violation = buffered.tally.violations[0]
    kept = Path(violation.kept)
    assert kept.is_relative_to(tmp_path_factory.getbasetemp())
    for side in ("killed", "store"):
        assert (kept / side / "commitlog").is_dir()
    assert (kept / "killed" / "abort").is_file()


# ---- the harness -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupt_ends_the_run_and_keeps_its_results(run: Runner, tmp_path: Path, workers: int) -> None:
    report = run(60, store="interrupted-recovery", workers=workers)
    assert report.interrupted
    assert 0 < report.tally.cycles < 60
    assert not report.tally.violations
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_zygote_that_dies_is_the_harness_at_fault(run: Runner, tmp_path: Path, workers: int) -> None:
    with pytest.raises(HarnessError, match="the process that fork"):
        run(60, store="murdered-zygote", workers=workers)
    assert list(tmp_path.iterdir()) == []


def test_no_kills_are_vacuous(run: Runner) -> None:
    assert run(0).verdict is Verdict.VACUOUS


@pytest.mark.slow
def test_a_process_with_threads_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.listdir", lambda _path: ["1", "2"])
    with pytest.raises(HarnessError, match="2 threads"):
        run_kills(1, seed=1, directory=tmp_path)
