"""Test exhaustive runs: honest claims, equal results, failures that replay.

Results do not depend on the division of the work or on interrupts.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tornpage.impl.log import commit_log
from tornpage.model import operations
from tornpage.model.operations import Choice
from tornpage.properties.campaign.replay import replay
from tornpage.properties.contract import HarnessError, Verdict
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.images import compose
from tornpage.properties.explore.exhaustive import checking, resume, run, workload
from tornpage.properties.explore.exhaustive.explored import Plan
from tornpage.properties.explore.exhaustive.operation_set import NamedOperation, Workload, workloads
from tornpage.properties.explore.exhaustive.resume import RESUME_FILE, OtherPlan, ResumeFile
from tornpage.properties.explore.exhaustive.run import ExhaustResult, caught_canary, run_exhaust
from tornpage.properties.explore.exhaustive.search import search_exhaustively
from tornpage.properties.explore.exhaustive.statement import figures_of, statement_of
from tornpage.properties.program.case import Disk

SMALL = Plan(ops=1, facts=0, operation_names=("put", "flush", "close", "open"), check_ops=0, check_facts=0)


@pytest.fixture(autouse=True)
def canary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make runs take the canary for caught; a test of it calls `caught_canary` itself."""
    monkeypatch.setattr(run, "caught_canary", lambda plan, tracker: "a bug")


@pytest.fixture(scope="module")
def whole() -> ExhaustResult:
    return replace(run_exhaust(SMALL), canary="a bug")


def stopping_at(limit: int) -> Callable[[int, float], None]:
    calls = iter(range(1, 1_000_000))

    def progress(states: int, seconds: float) -> None:
        if next(calls) == limit:
            raise KeyboardInterrupt

    return progress


def test_a_right_store_holds_and_the_statement_says_how_far(whole: ExhaustResult) -> None:
    assert whole.verdict is Verdict.HOLDS
    said, figures = statement_of(whole.tally), figures_of(whole.tally)
    bound = "exhaustive up to 1 operation with the operations {put, flush, close, open}, 0 in-flight writes, disk"
    assert said.startswith(bound)
    assert "disk posix-strict, mode async, log files of 2048 bytes: 4 workloads" in said
    assert said.endswith(
        f"brute-force check at (0 operations, 0 in-flight writes), {figures['check_states']} states: equal"
    )
    assert (
        figures["states"] == figures["judged"] + figures["pruned"] == sum(each.states for each in whole.tally.explored)
    )
    assert figures["certified"] >= figures["workloads"]
    assert figures["images"] > figures["recovered_states"] > 1


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_workloads_are_made_as_they_are_needed(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound of eight operations has billions of workloads.

    All in one list took the memory, whatever the time limit.
    """
    made: list[Workload] = []

    def noted(operation_set: Sequence[NamedOperation], length: int) -> Iterator[Workload]:
        for each in workloads(operation_set, length):
            made.append(each)
            yield each

    monkeypatch.setattr(run, "workloads", noted)
    result = run_exhaust(Plan(ops=4, facts=0), seconds=0.0, workers=workers)
    assert (result.is_cut, result.tally.ops, result.verdict) == (True, -1, Verdict.UNKNOWN)
    assert len(made) < 100


def test_an_interrupted_run_claims_the_smaller_bound_and_goes_on_from_there(
    whole: ExhaustResult, tmp_path: Path
) -> None:
    stopped = run_exhaust(SMALL, kept=ResumeFile(tmp_path, SMALL), progress=stopping_at(4))
    assert stopped.interrupted
    assert stopped.verdict is Verdict.UNKNOWN
    assert len(stopped.tally.explored) == 3
    assert figures_of(stopped.tally)["workloads"] == 1
    assert "exhaustive the open of a new store with the operations" in statement_of(stopped.tally)
    assert statement_of(stopped.tally).endswith("the bound of 1 operation was not finished and is not claimed")
    again = run_exhaust(SMALL, kept=ResumeFile(tmp_path, SMALL))
    assert again.tally.again == 4
    assert again.verdict is Verdict.HOLDS
    assert (again.result_hash, statement_of(again.tally)) == (whole.result_hash, statement_of(whole.tally))
    longer = replace(SMALL, ops=2)
    further = run_exhaust(longer, kept=ResumeFile(tmp_path, longer), progress=stopping_at(6))
    assert further.tally.again == 5, "a larger bound goes on where the smaller one ended"


def test_a_line_that_was_not_finished_is_done_again(tmp_path: Path) -> None:
    run_exhaust(SMALL, kept=ResumeFile(tmp_path, SMALL), progress=stopping_at(3))
    file = tmp_path / RESUME_FILE
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:-1]) + lines[-1][:40])
    assert len(ResumeFile(tmp_path, SMALL).explored) == 1
    assert len(file.read_text().splitlines()) == 3, "the rest of it is gone"


@pytest.mark.parametrize(
    "other", [replace(SMALL, facts=1), replace(SMALL, mode="sync"), replace(SMALL, operation_names=("put",))]
)
def test_what_belongs_to_another_bound_is_not_believed(other: Plan, tmp_path: Path) -> None:
    ResumeFile(tmp_path, SMALL)
    with pytest.raises(OtherPlan, match="another bound"):
        ResumeFile(tmp_path, other)


def test_what_other_source_has_shown_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ResumeFile(tmp_path, SMALL)
    monkeypatch.setattr("tornpage.properties.explore.exhaustive.resume.source_fingerprint", lambda: "other")
    with pytest.raises(OtherPlan, match="another version of the source"):
        ResumeFile(tmp_path, SMALL)


def test_the_source_is_that_of_store_model_and_judges() -> None:
    """After a move of its module the fingerprint belonged to no file."""
    files = {source.__file__ for source in (commit_log, operations, run)}
    assert files <= {str(path) for path in resume._sources()}


@pytest.mark.parametrize("text", ["no JSON\n", "[1]\n", '{"tornpage_exhaust": 0}\n'])
def test_a_file_that_is_something_else_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / RESUME_FILE).write_text(text)
    with pytest.raises(OtherPlan):
        ResumeFile(tmp_path, SMALL)


def test_a_run_out_of_time_claims_nothing_that_it_did_not_finish() -> None:
    result = run_exhaust(SMALL, seconds=1e-6)
    assert result.is_cut
    assert result.verdict is Verdict.UNKNOWN
    assert statement_of(result.tally) == "exhaustive up to nothing: not even the open of a new store was finished"


@pytest.mark.deep
def test_two_processes_find_what_one_finds(whole: ExhaustResult) -> None:
    shared = run_exhaust(SMALL, workers=2)
    assert (shared.result_hash, statement_of(shared.tally)) == (whole.result_hash, statement_of(whole.tally))
    assert figures_of(shared.tally) == figures_of(whole.tally)


@pytest.mark.deep
def test_several_processes_stop_with_the_first_failure_in_order() -> None:
    broken = replace(SMALL, bug="erase-not-synced", facts=1)
    one, two = run_exhaust(broken), run_exhaust(broken, workers=2)
    assert one.failure is not None
    assert two.failure is not None
    assert one.failure.case == two.failure.case


@pytest.mark.slow
def test_a_process_that_dies_is_the_harness_fault() -> None:
    killed: list[int] = []

    def kill_one(states: int, seconds: float) -> None:
        if not killed:
            killed.append(children(os.getpid())[0])
            os.kill(killed[0], signal.SIGKILL)

    with pytest.raises(HarnessError, match="has died: it was killed by SIGKILL"):
        run_exhaust(replace(SMALL, ops=2), workers=2, progress=kill_one)
    assert killed


def children(pid: int) -> list[int]:
    """Return the workers of a process: its children except helpers of multiprocessing."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    told = [(int(child), Path(f"/proc/{child}/cmdline").read_bytes()) for child in found]
    return [child for child, line in told if b"spawn_main" in line]


def test_a_planted_bug_is_broken_and_its_case_replays(tracker: DirtyTracker) -> None:
    result = run_exhaust(replace(SMALL, bug="no-crc", facts=1, operation_names=("roll",)))
    assert result.verdict is Verdict.BROKEN
    assert result.failure is not None
    assert len(result.failure.case.operations) == 2
    assert replay(result.failure.case, tracker=tracker) is not None


def test_pruning_that_brute_force_contradicts_is_the_harness_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    real = checking.check_workload

    def skipping_names(*arguments: object, **options: object) -> object:
        return real(*arguments, **options, choices=nothing_survives)  # type: ignore[arg-type]

    def nothing_survives(state: DiskState, bound: int, beyond: int) -> Iterator[dict[str, Choice]]:
        yield {}

    monkeypatch.setattr(run, "check_workload", skipping_names)
    with pytest.raises(HarnessError, match=r"disagree on the workload open: .*pruned away"):
        run_exhaust(SMALL)


def test_an_illegal_image_is_the_harness_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def forging(state: DiskState, choices: Mapping[str, Choice]) -> Image:
        image = compose(state, choices)
        return replace(image, files={**image.files, "/store/forged": b"x"})

    monkeypatch.setattr(workload, "compose", forging)
    with pytest.raises(HarnessError, match="illegal"):
        run_exhaust(SMALL)


def test_a_failure_that_does_not_replay_is_the_harness_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "replay", lambda case, **_: None)
    with pytest.raises(HarnessError, match="does not replay"):
        run_exhaust(replace(SMALL, bug="no-crc", facts=1, operation_names=("roll",)))


@pytest.mark.parametrize("disk", ["posix-strict", "journal", "kill"])
def test_the_canary_is_caught_on_each_disk(disk: Disk, tracker: DirtyTracker) -> None:
    assert caught_canary(replace(SMALL, disk=disk), tracker=tracker)


def test_without_its_canary_a_run_is_vacuous(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "caught_canary", lambda plan, tracker: "")
    assert run_exhaust(SMALL).verdict is Verdict.VACUOUS


def test_a_hunt_grows_and_ends_with_a_short_case(tracker: DirtyTracker) -> None:
    *states, last = search_exhaustively("erase-not-synced", tracker=tracker, modes=("async",))
    assert last is not None
    assert [type(operation).__name__ for operation in last.case.operations] == ["Put", "Crash"]
    assert set(states) == {None}


def test_a_hunt_that_is_over_has_found_nothing(tracker: DirtyTracker) -> None:
    asked = iter(range(1_000))
    assert list(search_exhaustively("", tracker=tracker, is_over=lambda: next(asked) == 20)) == [None] * 20
