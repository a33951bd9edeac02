"""Test that a directory is judged again only if a kill leaves it changed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tornpage.impl.parts import Parts
from tornpage.model.operations import Put
from tornpage.model.state import CommitLog
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.explore.kills import judged
from tornpage.properties.explore.kills.judge import RIGHT, LegalLogs, Survived, legal_after
from tornpage.properties.explore.kills.judged import Judged
from tornpage.properties.explore.kills.run import KILL_SETTINGS
from tornpage.properties.explore.kills.snapshot import Snapshot, snapshot_of
from tornpage.properties.judge import rulings

LOG, LONGER = CommitLog(end_offset=0), CommitLog(end_offset=100, flushed_offset=100)
LEFT = Snapshot({"checkpoint": b"\0"})


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Return a judge of a directory that returns the number of real judgements so far."""
    memory = Judged(Parts())
    monkeypatch.setattr(
        judged, "judge_directory", lambda directory, legal, **_: Survived(RIGHT, next(iter(legal.values())))
    )

    def run(left: Snapshot = LEFT, survivor: CommitLog = LOG, file_bytes: int = 4096, now_ms: int = 1) -> int:
        settings = replace(KILL_SETTINGS, file_bytes=file_bytes)
        memory.judge(str(tmp_path), left, {survivor.end_offset: survivor}, settings=settings, now_ms=now_ms)
        return memory.count

    return run


def test_the_same_is_judged_once_and_each_twentieth_time(judge: Callable[..., int]) -> None:
    assert [judge() for _ in range(20)] == [1] * 20
    assert judge() == 2


def test_whatever_is_different_is_judged(judge: Callable[..., int]) -> None:
    assert judge() == 1
    assert judge(left=Snapshot({"checkpoint": b"\1"})) == 2
    assert judge(left=Snapshot({"checkpoints": b"\0"})) == 3
    assert judge(survivor=LONGER) == 4
    assert judge(file_bytes=8192) == 5
    assert judge(now_ms=2) == 6
    assert judge(left=Snapshot(LEFT.files, ("consumequeue",))) == 7


def test_what_a_recovery_leaves_again_is_not_recovered_again_unless_it_broke_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, broken = Judged(Parts()), [True]

    def judge_directory(
        directory: str, legal: LegalLogs, *, once_more: Callable[[Snapshot, CommitLog], bool], **_: object
    ) -> Survived:
        if once_more(Snapshot({"commitlog/0": b"recovered"}), LOG) and broken.pop():
            return Survived(rulings.broken(6, "a second recovery differs from the first"))
        broken.append(False)
        return Survived(RIGHT, LOG)

    monkeypatch.setattr(judged, "judge_directory", judge_directory)

    def run(number: int) -> int:
        memory.judge(
            str(tmp_path), Snapshot({"checkpoint": bytes([number])}), {0: LOG}, settings=KILL_SETTINGS, now_ms=1
        )
        return memory.twice

    with pytest.raises(GuaranteeBroken):
        run(0)
    broken.append(False)
    assert [run(number) for number in range(1, 22)] == [2] * 20 + [3], "once, and each twentieth time"
    assert memory.count == 22


def test_a_program_begins_to_count_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Judged(Parts(), passed_over=18)
    monkeypatch.setattr(judged, "judge_directory", lambda directory, legal, **_: Survived(RIGHT, LOG))

    def judge() -> int:
        memory.judge(str(tmp_path), LEFT, {0: LOG}, settings=KILL_SETTINGS, now_ms=1)
        return memory.count

    assert [judge() for _ in range(4)] == [1, 1, 2, 2], "known, known and due, known"


def test_a_snapshot_has_files_and_empty_directories(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / "00").write_bytes(b"bytes")
    (tmp_path / "consumequeue" / "T").mkdir(parents=True)
    (tmp_path / "abort").touch()
    found = snapshot_of(str(tmp_path))
    assert found.files == {"abort": b"", "commitlog/00": b"bytes"}
    assert found.directories == ("commitlog", "consumequeue", "consumequeue/T")
    assert found.below("commitlog") == {"commitlog/00": b"bytes"}


# ---- the answers of a process --------------------------------------------------------------------------------------


def _lived(*ends: int) -> Any:
    """Return the progress of a process that opened its store and performed operations.

    It has the end offset after each operation.
    """
    return SimpleNamespace(returned=len(ends) - 1, begun=len(ends) - 1, end_of=lambda verb: ends[verb])


@pytest.mark.parametrize(
    ("ends", "word", "contract"),
    [((0,), "holds", 8), ((5,), "broken", 2), ((0, 5), "broken", 8), ((0, -1), "broken", 8)],
)
def test_answers_of_a_killed_process_are_ruled_on(ends: tuple[int, ...], word: str, contract: int) -> None:
    answered = legal_after(
        {0: CommitLog()}, _lived(*ends), (Put(),), settings=KILL_SETTINGS, start_ms=1_700_000_000_000
    )
    assert (answered.ruling.verdict, answered.ruling.contract) == (word, contract)
    assert sorted(answered.legal) == ([0] if word == "holds" else [])
