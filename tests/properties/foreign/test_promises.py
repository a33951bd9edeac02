"""Test the promises of a store, and the evidence that a run needs for each of them."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from tornpage.model.operations import Close, Crash, Flush, Open, Operation, Put
from tornpage.properties.campaign.replay import Failure, replay
from tornpage.properties.contract import Verdict
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explain.evidence import Witness
from tornpage.properties.explore.foreign.campaign import TargetPlan, run_target_campaign
from tornpage.properties.foreign.reference_store import ReferenceStore
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.properties.program.case import Case, Settings
from tornpage.render.counterexample import failure_text, program_lines

watched = pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")


class Log:
    """A correct log of lines: each put is written and synced.

    Recovery reads whole lines and syncs nothing.
    """

    promises: ClassVar[dict[str, object]] = {"durable": "put", "offsets": False}

    def __init__(self, directory: str) -> None:
        self._path = f"{directory}/log"
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        there = os.open(directory, os.O_RDONLY)
        os.fsync(there)
        os.close(there)
        lines = Path(self._path).read_bytes().splitlines(keepends=True)
        self._lines = [line.split(b"\t") for line in lines if line.endswith(b"\n")]
        whole = sum(map(len, lines[: len(self._lines)]))
        if whole < os.fstat(self._file).st_size:
            os.ftruncate(self._file, whole)
            os.fsync(self._file)

    def put(self, topic: str, queue: int, body: bytes, keys: Sequence[str]) -> tuple[int, int]:
        name = f"{topic} {queue}".encode()
        number = sum(line[0] == name for line in self._lines)
        self._lines.append([name, body.hex().encode() + b"\n"])
        os.write(self._file, b"\t".join(self._lines[-1]))
        os.fsync(self._file)
        return len(self._lines), number

    def get(self, offset: int) -> bytes | None:
        return None

    def read(self, topic: str, queue: int, number: int) -> bytes | None:
        held = [line[1] for line in self._lines if line[0] == f"{topic} {queue}".encode()]
        return bytes.fromhex(held[number].decode()) if number < len(held) else None

    def find(self, topic: str, key: str) -> Sequence[bytes]:
        return []

    def flush(self) -> None:
        return None

    def close(self) -> None:
        os.close(self._file)


class RecoveredLog(Log):
    """Promises too much: that lines found after a crash are durable."""

    promises: ClassVar[dict[str, object]] = {**Log.promises, "recovered": True}


class LinkedLog(Log):
    """Has a symbolic link, for which no power loss can be made."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        if not os.path.exists(f"{directory}/link"):
            os.symlink(self._path, f"{directory}/link")


def run(name: str, *operations: Operation) -> Failure | None:
    with choose_tracker("auto") as tracker:
        return replay(Case(Settings(target=f"{__file__}:{name}"), operations), tracker=tracker)


KILLED_IN_A_PUT = (Put(body_bytes=8), Crash(kill=True, back=2))
"""The line is written and not synced when the process dies: the put has no answer."""


@watched
@pytest.mark.parametrize("close", [(), (Open(),), (Close(), Open()), (Flush(), Close())], ids=str)
def test_put_without_answer_is_not_promised_by_a_close(close: tuple[Operation, ...]) -> None:
    """Symptom: `a message is lost that had been promised to survive` for five correct stores.

    Cause: a close was said to promise every message that the store showed, also one whose put had no answer.
    """
    assert run("Log", *KILLED_IN_A_PUT, *close, Crash()) is None


@watched
def test_store_that_promises_recovered_messages_is_held_to_it() -> None:
    broken = run("RecoveredLog", *KILLED_IN_A_PUT, Crash())
    assert broken is not None
    assert broken.broken.contract == 2


@watched
def test_put_with_answer_after_one_without_protects_both() -> None:
    assert run("Log", *KILLED_IN_A_PUT, Put(body_bytes=8), Crash()) is None


@pytest.mark.parametrize(("durable", "floors"), [("put", [1, 1, 1]), ("flush", [0, 2, 2]), ("close", [0, 0, 2])])
def test_floor_after_flush_and_close(durable: str, floors: list[int]) -> None:
    """`floors` are the fewest messages that survive a power loss.

    They are given after the kill, after a flush and after a close.
    """
    store = ReferenceStore(durable=durable, kill="put")
    store.put("T", 0, b"answered")
    before = store.state
    store.put("T", 0, b"unanswered")
    store.crash("kill", messages=2, since=before)
    found = [min(store.survivors("power"))]
    store.flush()
    found.append(min(store.survivors("power")))
    store.close()
    found.append(min(store.survivors("power")))
    assert found == floors


@pytest.mark.slow
@watched
@pytest.mark.parametrize(("disk", "verdict"), [("posix-strict", Verdict.VACUOUS), ("kill", Verdict.HOLDS)])
def test_run_without_power_losses_is_vacuous_unless_asked_for(disk: str, verdict: Verdict) -> None:
    """Symptom: `holds` and exit code 0 for stores for which no power loss could be made."""
    plan = TargetPlan(Settings(target=f"{__file__}:LinkedLog", disk=disk), states=30, seed=1)  # type: ignore[arg-type]
    with choose_tracker("auto") as tracker:
        result = run_target_campaign(plan, tracker=tracker)
    assert result.verdict is verdict
    assert ("power" in result.silent) is (disk != "kill")


class NeverSynced(Log):
    """Promises that a flush or a close makes messages durable, and syncs nothing."""

    promises: ClassVar[dict[str, object]] = {**Log.promises, "durable": "flush", "kill": "put"}

    def put(self, topic: str, queue: int, body: bytes, keys: Sequence[str]) -> tuple[int, int]:
        name = f"{topic} {queue}".encode()
        self._lines.append([name, body.hex().encode() + b"\n"])
        os.write(self._file, b"\t".join(self._lines[-1]))
        return len(self._lines), sum(line[0] == name for line in self._lines) - 1


@watched
@pytest.mark.parametrize(
    ("store", "operations", "said"),
    [
        ("NeverSynced", (Put(body_bytes=8), Flush(), Put(body_bytes=8)), "the answer of operation 2 (flush)"),
        ("NeverSynced", (Put(body_bytes=8), Close()), "the answer of operation 2 (close)"),
        ("NeverSynced", (Put(body_bytes=8), Open()), "the close that operation 2 (open) does first"),
        ("RecoveredLog", KILLED_IN_A_PUT, "the recovery after operation 2 (crash), because `recovered` is promised"),
    ],
)
def test_failure_names_the_answer_that_promised_the_message(
    store: str, operations: tuple[Operation, ...], said: str
) -> None:
    """Symptom: a promised message was lost, and no put in the program had an answer."""
    broken = run(store, *operations, Crash())
    assert broken is not None
    assert broken.broken.expected.endswith(f"; promised by {said}")


@watched
def test_program_says_what_is_done_unseen() -> None:
    case = Case(Settings(target=f"{__file__}:NeverSynced"), (*KILLED_IN_A_PUT, Open(), Crash()))
    notes = [line.partition("  # ")[2] for line in program_lines(case)[:-1]]
    assert notes == ["", "killed 2 events before the answer of operation 1", "closes the store first", ""]


class DiesInPut(Log):
    """Opens only while no line is cut off."""

    def __init__(self, directory: str) -> None:
        if os.path.exists(f"{directory}/begun"):
            raise OSError("it was killed in a put")
        super().__init__(directory)
        self._begun = f"{directory}/begun"

    def put(self, topic: str, queue: int, body: bytes, keys: Sequence[str]) -> tuple[int, int]:
        Path(self._begun).touch()
        answer = super().put(topic, queue, body, keys)
        os.unlink(self._begun)
        return answer


@watched
def test_power_loss_that_lost_nothing_is_told_as_a_kill() -> None:
    with choose_tracker("auto") as tracker:
        case = Case(Settings(target=f"{__file__}:DiesInPut"), (Put(body_bytes=8), Crash(back=2, others="kept")))
        broken = replay(case, tracker=tracker, witness=Witness())
    assert broken is not None
    assert "the power loss lost nothing, so a killed process shows the same" in failure_text(broken)


class RemovesDirectory(Log):
    """Has a directory that its next session removes."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        scratch = Path(directory, "scratch")
        if scratch.exists():
            scratch.rmdir()
        else:
            scratch.mkdir()


@pytest.mark.slow
@watched
def test_directory_removed_in_a_later_session_does_not_end_the_campaign() -> None:
    """Symptom: a second power loss ended the campaign with exit code 2."""
    plan = TargetPlan(Settings(target=f"{__file__}:RemovesDirectory"), states=60, seed=1)
    with choose_tracker("auto") as tracker:
        result = run_target_campaign(plan, tracker=tracker)
    assert result.tally.states == 60
