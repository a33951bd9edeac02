"""Test deletions of topics and delivery while a fault rule is armed.

A right store passes. A wrong one is noticed, also if the rule lets nothing fail.
"""

from dataclasses import replace

import pytest

from tornpage.model.operations import AimFault, Close, Crash, DeleteTopics, Flush, Open, Operation, Put, Step
from tornpage.properties.campaign.replay import replay
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Case, Settings

NOWHERE = AimFault("rename-error", "path=nowhere")
REPUT, FLUSH, SAVE = Step(service="reput"), Flush(), Step(service="progress", after_ms=10_000)
SMALL, WITH_EXT = Settings(file_bytes=1024), Settings(queue_ext=True)
SOON = Step(service="schedule", after_ms=1_000)
FIRST, SECOND = Put(properties="DELAY\x011"), Put(properties="DELAY\x012")
LARGE = Put(body_bytes=500, properties="DELAY\x011")
NO_FILE_ONCE = AimFault("no-space", "op=create and kind=log and nth=1")

RIGHT: dict[str, tuple[Settings, tuple[Operation, ...], dict[str, int]]] = {
    "topics are deleted": (
        SMALL,
        (Put(), Put(topic="U"), REPUT, NOWHERE, DeleteTopics(in_use=("U",)), Put(), REPUT, Crash(kill=True)),
        {"deleted_under_a_fault": 1},
    ),
    "topics are deleted, and a file stays": (
        SMALL,
        (Put(), REPUT, AimFault("unlink-error", "kind=queue"), DeleteTopics(), Put(), REPUT, Crash(kill=True)),
        {"deleted_under_a_fault": 1, "deleted_with_files_left": 1},
    ),
    "a deletion is refused": (
        SMALL,
        (Put(), REPUT, AimFault("no-space", "kind=topics"), DeleteTopics(), Put(), Open()),
        {"deletion_refused": 1},
    ),
    "messages are delivered": (
        SMALL,
        (FIRST, SECOND, FIRST, REPUT, NOWHERE, SOON, SOON, SAVE, Crash()),
        {"delivered_under_a_fault": 3},
    ),
    "a copy is refused, and comes later": (
        SMALL,
        (LARGE, REPUT, NO_FILE_ONCE, SOON, SOON, Close(), Open()),
        {"delivered_under_a_fault": 1, "delivery_refused_under_a_fault": 1},
    ),
    "a level is refused, another one is not": (
        SMALL,
        (LARGE, replace(SECOND, body_bytes=10), REPUT, NO_FILE_ONCE, Step(service="schedule", after_ms=2_000), Open()),
        {"delivered_under_a_fault": 1, "delivery_refused_under_a_fault": 1},
    ),
    "copies that wait are answered by a close": (
        replace(SMALL, sync_flush=True, pending_copies=3),
        (FIRST, REPUT, SOON, NOWHERE, Open()),
        {},
    ),
}

WRONG: dict[str, tuple[Settings, tuple[Operation, ...], int]] = {
    "RMQ-B55": (SMALL, (Put(topic="RMQ_SYS_TRANS_OP_HALF_TOPIC"), NOWHERE, DeleteTopics()), 10),
    "deleted-numbers-go-on": (SMALL, (Put(), NOWHERE, DeleteTopics()), 10),
    "deleted-topic-not-durable": (SMALL, (Put(), REPUT, FLUSH, NOWHERE, DeleteTopics(), Crash()), 10),
    "RMQ-B61": (SMALL, (LARGE, REPUT, NO_FILE_ONCE, SOON), 12),
    "address-is-no-time": (WITH_EXT, (FIRST, REPUT, NOWHERE, Step(service="schedule")), 12),
    "progress-of-the-round": (SMALL, (FIRST, FIRST, REPUT, NOWHERE, SOON), 12),
    "delay-stays": (SMALL, (FIRST, REPUT, NOWHERE, SOON), 12),
}


@pytest.mark.parametrize("case", RIGHT)
def test_a_right_store_is_right(case: str, tracker: DirtyTracker) -> None:
    settings, operations, effects = RIGHT[case]
    trial = lockstep_of(settings, tracker=tracker)
    for operation in operations:
        trial.run(operation)
    counted = {name: times for name, times in trial.coverage.items() if name.startswith(("delet", "delivered_under"))}
    counted |= {name: trial.coverage[name] for name in effects}
    assert counted == effects


@pytest.mark.parametrize("bug", WRONG)
def test_a_wrong_one_is_noticed_although_nothing_fails_or_only_once(bug: str, tracker: DirtyTracker) -> None:
    settings, operations, contract = WRONG[bug]
    failure = replay(Case(replace(settings, bug=bug), operations), tracker=tracker)
    assert failure is not None
    assert failure.broken.contract == contract
    assert failure.case.operations == operations
    assert replay(Case(settings, operations), tracker=tracker) is None


def test_a_level_without_a_message_that_goes_on_is_noticed(
    tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = lockstep_of(SMALL, tracker=tracker)
    trial.run(NOWHERE)
    monkeypatch.setattr(trial.store, "delay_offsets", lambda: {3: 1})
    with pytest.raises(GuaranteeBroken, match="a level without messages advances"):
        trial.run(SOON)
