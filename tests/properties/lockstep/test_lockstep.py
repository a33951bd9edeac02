"""Test the lockstep run: it accepts a right store and notices a wrong one in every call."""

from dataclasses import replace
from typing import Any

import pytest

from tornpage.impl.log.commit_log import CommitLog
from tornpage.impl.message.codec import check_record
from tornpage.impl.message.message import GetResult, GetStatus, Message, PutResult, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.recovery.recovery import Recovery
from tornpage.model.operations import Close, Crash, Damage, FailSync, Flush, Get, Open, Operation, Put
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Disk, Settings

SETTINGS = Settings(file_bytes=4096)
SOME = (Put(body_bytes=900), Put(body_bytes=900, queue_id=1), Put(topic="U"), Flush(), Put(body_bytes=2000), Put())


def run(tracker: DirtyTracker, *operations: Operation, settings: Settings = SETTINGS) -> Lockstep:
    trial = lockstep_of(settings, tracker=tracker)
    for operation in operations:
        trial.run(operation)
    return trial


@pytest.mark.parametrize("disk", ["posix-strict", "journal"])
@pytest.mark.parametrize("sync_flush", [False, True])
def test_a_right_store_passes_every_verb_and_disaster(tracker: DirtyTracker, disk: Disk, sync_flush: bool) -> None:
    settings = replace(SETTINGS, disk=disk, sync_flush=sync_flush)
    operations = (
        *SOME, Get(record=1), Get(record=1, shift=1), Crash(), *SOME, Crash(kill=True, back=2), Put(), Close(), Put(),
        Open(), FailSync(), Put(), Flush(), Put(), Crash(back=1), Put(), Damage(kind="flip", record=1, amount=900),
    )  # fmt: skip
    trial = run(tracker, *operations, settings=settings)
    assert len(trial.performed) == len(operations)


def test_power_loss_at_rest_keeps_what_was_flushed_and_nothing_more(tracker: DirtyTracker) -> None:
    trial = run(tracker, *SOME, Crash())
    assert len(trial.log.records) == 3
    assert trial.log.flushed_offset == trial.log.end_offset


def test_a_kill_keeps_everything(tracker: DirtyTracker) -> None:
    assert len(run(tracker, *SOME, Crash(kill=True)).log.records) == 5


def test_a_full_disk_is_an_answer_and_not_an_exception(tracker: DirtyTracker) -> None:
    trial = run(tracker, *[Put(body_bytes=2000)] * 6, settings=replace(SETTINGS, files_max=2))
    assert len(trial.log.records) == 2


def test_a_performed_crash_has_the_numbers_there_were(tracker: DirtyTracker) -> None:
    page = "page /store/commitlog/00000000000000000000 0"
    trial = run(tracker, Put(), Crash(back=99, survived={"page /nowhere 0": 3, page: 99}))
    crash = trial.performed[-1]
    assert isinstance(crash, Crash)
    assert 0 < crash.back < 99
    assert set(crash.survived) <= {page}


class _Lying(CommitLog):
    """Gives scripted answers; each test sets them."""


def _lying(**methods: object) -> Parts:
    return Parts({CommitLog: type("_Lie", (_Lying,), dict(methods))})


def _put_says(change: dict[str, Any]) -> Parts:
    def put(self: CommitLog, message: Message, *, now_ms: int) -> PutResult:
        return CommitLog.put(self, message, now_ms=now_ms)._replace(**change)

    return _lying(put=put)


def _get_says(answer: GetResult) -> Parts:
    return _lying(get=lambda self, offset, readable_end: answer)


def _raises(*_: object, **__: object) -> Any:
    raise RuntimeError("out of order")


@pytest.mark.parametrize(
    ("components", "operations", "sentence"),
    [
        (_put_says({"status": PutStatus.MESSAGE_ILLEGAL}), (Put(),), "a put has another answer"),
        (_put_says({"queue_offset": 7}), (Put(),), "a put has another answer"),
        (_put_says({"store_timestamp": 1}), (Put(),), "a put has another answer"),
        (_get_says(GetResult(GetStatus.OFFSET_TOO_SMALL)), (Put(),), "has another status than the model"),
        (_lying(put=_raises), (Put(),), "put raises RuntimeError"),
        (_lying(flush=_raises), (Put(), Flush()), "flush raises RuntimeError"),
        (_lying(get=_raises), (Put(),), "get raises RuntimeError"),
    ],
)
def test_a_wrong_answer_is_noticed(
    tracker: DirtyTracker, components: Parts, operations: tuple[Operation, ...], sentence: str
) -> None:
    trial = lockstep_of(SETTINGS, tracker=tracker, parts=components)
    for operation in operations[:-1]:
        trial.run(operation)
    with pytest.raises(GuaranteeBroken, match=sentence) as caught:
        trial.run(operations[-1])
    assert caught.value.contract == 8


def test_a_store_that_does_not_open_breaks_contract_7(tracker: DirtyTracker) -> None:
    with pytest.raises(GuaranteeBroken, match="does not open") as caught:
        lockstep_of(SETTINGS, tracker=tracker, parts=Parts({Recovery: _raises}))
    assert caught.value.contract == 7


def test_a_served_message_that_was_not_put_is_noticed(tracker: DirtyTracker) -> None:
    def get(self: CommitLog, offset: int, readable_end: int) -> GetResult:
        found = CommitLog.get(self, offset, readable_end=readable_end)
        return found if found.message is None else replace(found, message=replace(found.message, body=b"other"))

    trial = lockstep_of(SETTINGS, tracker=tracker, parts=_lying(get=get))
    with pytest.raises(GuaranteeBroken, match="not the one put there"):
        trial.run(Put())


def test_a_checker_that_refuses_everything_is_noticed_at_the_next_open(tracker: DirtyTracker) -> None:
    seen: list[int] = []

    def check(view: memoryview, position: int, *, limit: int, offset: int) -> tuple[int, str | None]:
        refuses = bool(seen) and offset > 0
        return (0, "bad_magic") if refuses else check_record(view, position, limit=limit, offset=offset)

    trial = lockstep_of(SETTINGS, tracker=tracker, parts=Parts({check_record: check}))
    for operation in SOME:
        trial.run(operation)
    seen.append(len(SOME))  # before, a read would notice it
    with pytest.raises(GuaranteeBroken):
        trial.run(Crash(kill=True))
