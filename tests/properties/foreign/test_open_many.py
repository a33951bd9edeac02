"""Test that a process that opens many crash states gives the results of fresh ones."""

import json
import os
import shutil
import subprocess
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from tornpage.model.operations import Crash, Put
from tornpage.outcomes.skeletons import init_outcome
from tornpage.properties.contract import Verdict
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.explore.foreign.campaign import TargetPlan, TargetResult, run_target_campaign
from tornpage.properties.foreign.process import StoreProcess
from tornpage.properties.foreign.session import StoreSession
from tornpage.properties.foreign.spec import read_spec
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.properties.foreign.trial import TargetTrial
from tornpage.properties.foreign.watching import WatchedDirectory
from tornpage.properties.foreign.work_area import OPENS_MAX, ProcessPool
from tornpage.properties.program.case import Settings
from tornpage.render.explorations import target_outcome

watched = pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")
CARRIED: list[str] = []


class Log:
    """One line for each message, written with one call and synced."""

    promises: ClassVar[dict[str, object]] = {"durable": "put", "offsets": False}
    open_many = True
    syncs = True

    def __init__(self, directory: str) -> None:
        self.file = os.open(f"{directory}/log", os.O_RDWR | os.O_CREAT)
        self.lines = []
        end = 0
        for line in Path(directory, "log").read_bytes().splitlines(keepends=True):
            checksum, _, text = line.partition(b" ")
            if not line.endswith(b"]\n") or checksum != b"%08x" % zlib.crc32(text):
                break
            self.lines.append(json.loads(text))
            end += len(line)
        os.ftruncate(self.file, end)
        os.lseek(self.file, end, os.SEEK_SET)
        os.fsync(self.file)
        top = os.open(directory, os.O_RDONLY)
        os.fsync(top)
        os.close(top)

    def put(self, topic: str, queue: int, body: bytes, keys: Sequence[str]) -> tuple[int, int]:
        line = [topic, queue, body.hex()]
        text = json.dumps(line).encode() + b"\n"
        os.write(self.file, b"%08x %s" % (zlib.crc32(text), text))
        if self.syncs:
            os.fsync(self.file)
        number = sum(each[:2] == line[:2] for each in self.lines)
        self.lines.append(line)
        return 0, number

    def read(self, topic: str, queue: int, number: int) -> bytes | None:
        found = [body for *place, body in self.lines if place == [topic, queue]]
        return bytes.fromhex(found[number]) if number < len(found) else None

    def flush(self) -> None:
        os.fsync(self.file)

    def close(self) -> None:
        os.close(self.file)


class Unsynced(Log):
    """Syncs nothing in a put."""

    syncs = False


class Carries(Log):
    """Remembers messages of the directory that its process opened before."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        if len(CARRIED) > 2:
            self.lines = self.lines[:-1]
        CARRIED.append(directory)


class OpensOnce(Log):
    """Opens one directory in a process."""

    def __init__(self, directory: str) -> None:
        if CARRIED:
            raise OSError("it was open before")
        CARRIED.append(directory)
        super().__init__(directory)


class EndsAtClose(Log):
    """Writes as it closes, after the state that a crash leaves."""

    def close(self) -> None:
        os.write(self.file, b"closed")
        super().close()


class FailsToClose(Log):
    """Closes with an error from its second directory on."""

    def close(self) -> None:
        super().close()
        CARRIED.append("closed")
        if len(CARRIED) > 1:
            raise OSError("cannot close")


def run(target: str, *, reuse: bool, states: int = 40, seed: int = 3) -> TargetResult:
    plan = TargetPlan(Settings(target=target), states=states, seed=seed, reuse=reuse, failures_max=1)
    with choose_tracker("auto") as tracker:
        return run_target_campaign(plan, tracker=tracker)


@pytest.mark.slow
@watched
@pytest.mark.parametrize(("name", "verdict"), [("Log", Verdict.HOLDS), ("Unsynced", Verdict.BROKEN)])
def test_reused_processes_give_the_result_of_fresh_ones(name: str, verdict: Verdict) -> None:
    reused, fresh = (run(f"{__file__}:{name}", reuse=reuse) for reuse in (True, False))
    assert reused.verdict is fresh.verdict is verdict
    assert reused.result_hash == fresh.result_hash
    assert reused.tally.lines() == fresh.tally.lines()
    _, text = target_outcome(reused, TargetPlan(Settings()), command="", out=None)
    assert ("; the first failure was found after " in text) is (verdict is Verdict.BROKEN)


@pytest.mark.slow
@watched
@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_c_program_gives_the_same_result_with_reused_processes(tmp_path: Path) -> None:
    init_outcome("store", language="c", directory=str(tmp_path))
    subprocess.run(["gcc", "-O2", "-o", tmp_path / "store", tmp_path / "store.c"], check=True)
    reused, fresh = (run(f"cmd:{tmp_path}/store {{dir}}", reuse=reuse) for reuse in (True, False))
    assert reused.verdict is fresh.verdict is Verdict.HOLDS
    assert reused.result_hash == fresh.result_hash


@pytest.mark.slow
@watched
def test_failure_that_a_reused_process_alone_shows_is_counted_apart() -> None:
    """Without the check with a fresh process the campaign ends with exit code 4."""
    result = run(f"{__file__}:Carries", reuse=True)
    assert result.verdict is Verdict.HOLDS
    assert result.tally.reused_only == 1
    assert result.tally.states == 40


@pytest.mark.slow
@watched
def test_process_that_fails_to_close_is_replaced() -> None:
    assert run(f"{__file__}:FailsToClose", reuse=True, states=30).verdict is Verdict.HOLDS


@watched
def test_process_opens_directories_one_after_the_other(tmp_path: Path) -> None:
    pool, spec = ProcessPool(), read_spec(f"{__file__}:Log")
    roots = [tmp_path / name for name in "abc"]
    for root in roots:
        root.mkdir()
    watched = [WatchedDirectory(root, Image(frozenset({"/"}), {})) for root in roots]
    process = StoreProcess(spec, roots[0], watched=watched[0])
    try:
        StoreSession(process, opens_again=False).put("T", 0, b"first", [])
        pool.give_back(process)
        told = len(watched[0].journal)
        assert pool.take(roots[1], watched[1]) is process
        session = StoreSession(process, opens_again=True)
        assert session.read("T", 0, 0) is None
        session.put("T", 0, b"second", [])
        watched[1].look()
        watched[1].proves_itself()
        assert watched[1].unsupported == ""
        assert len(watched[0].journal) == told
        assert [len(each.journal) > 0 for each in watched] == [True, True, False]
        pool.give_back(process)
        process.opens = OPENS_MAX
        taken = pool.take(roots[2], watched[2])
        assert taken is process
        StoreSession(process, opens_again=True)
        pool.give_back(process)
        assert pool.take(roots[2], watched[2]) is None
    finally:
        process.kill()
        pool.end()


@watched
def test_session_that_a_reused_process_cannot_open_gets_a_fresh_one() -> None:
    pool = ProcessPool()
    try:
        for _ in range(2):
            trial = TargetTrial(Settings(target=f"{__file__}:OpensOnce"), pool)
            trial.run(Put(body_bytes=8))
            assert trial.store.process.opens == 1
            trial.release()
            trial.end()
    finally:
        pool.end()


def root_of(trial: TargetTrial) -> Path:
    assert trial._watched is not None
    return trial._watched.root


@watched
@pytest.mark.parametrize("kill", [False, True])
def test_crash_of_a_session_in_a_reused_process_leaves_the_state_before_its_close(kill: bool) -> None:
    pool = ProcessPool()
    try:
        trial = TargetTrial(Settings(target=f"{__file__}:EndsAtClose"), pool)
        trial.run(Put(body_bytes=8))
        process, root = trial.store.process, root_of(trial)
        before = (root / "log").read_bytes()
        trial.run(Crash(kill=kill))
        assert trial.store.process is process
        assert trial.has_reused_process
        assert (root / "log").read_bytes() == before + b"closed"
        assert root_of(trial) != root
        assert (root_of(trial) / "log").read_bytes() == before
        trial.end()
    finally:
        pool.end()


@watched
def test_crash_of_a_session_without_a_pool_kills_its_process() -> None:
    trial = TargetTrial(Settings(target=f"{__file__}:Log"))
    trial.run(Put(body_bytes=8))
    process = trial.store.process
    trial.run(Crash())
    assert trial.store.process is not process
    assert process.said() is not None
    assert not trial.has_reused_process
    trial.end()
