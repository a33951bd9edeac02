"""Test held pulls in a lockstep run: the comparison with the model, and pulls left open."""

from collections.abc import Sequence

import pytest

from tornpage.model.operations import (
    CancelPull,
    Clean,
    Close,
    Crash,
    DeleteTopics,
    FailSync,
    Flush,
    Open,
    Operation,
    PullHeld,
    PullWhileDispatching,
    Put,
    RefuseFile,
    Step,
    SwitchFlag,
)
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Settings

REPUT, LOOK, PUT, PULL = Step(service="reput"), Step(service="pull-hold"), Put(), PullHeld()
TAGGED, WANTED = Put(properties="TAGS\x01TagA"), PullHeld(tags="TagA")
LATE = Step(service="pull-hold", after_ms=15_000)
FULL = Put(body_bytes=800)
SMALL = Settings(file_bytes=1024)

CASES: dict[str, tuple[Settings, Sequence[Operation], dict[str, int]]] = {
    "a message comes": (Settings(), (PULL, PUT, REPUT, LOOK), {"held_pull_woken": 1, "held_pull_FOUND": 1}),
    "nothing comes": (
        Settings(), (PULL, LOOK, LATE), {"held_pull_late": 1, "held_pull_NO_MATCHED_LOGIC_QUEUE": 1},
    ),
    "nothing that is wanted comes": (
        Settings(), (WANTED, PUT, REPUT, LOOK, LATE), {"held_pull_late": 1, "held_pull_NO_MATCHED_MESSAGE": 1},
    ),
    "it is not dispatched": (Settings(), (PULL, PUT, LOOK, Close()), {"held_pull_closed": 1}),
    "it lies in a buffer": (
        Settings(pool_buffers=2),
        (PULL, PUT, REPUT, LOOK, Step(service="commit", after_ms=200), REPUT, LOOK),
        {"held_pull_woken": 1},
    ),
    "its sync has failed": (
        Settings(), (PUT, Flush(), REPUT, PULL, PUT, FailSync(), Flush(), REPUT, LOOK, LATE),
        {"held_pull_late": 1, "held_pull_OFFSET_OVERFLOW_ONE": 1},
    ),
    "dispatch breaks off": (
        Settings(), (PULL, PUT, RefuseFile(), REPUT, LOOK, PULL, REPUT, LOOK), {"pull_held": 1, "held_pull_woken": 1},
    ),
    "its topic is deleted": (
        Settings(), (PUT, REPUT, PULL, DeleteTopics(), LOOK), {"held_pull_NO_MATCHED_LOGIC_QUEUE": 1},
    ),
    "what it did not want expires": (
        SMALL,
        (WANTED, FULL, FULL, REPUT, Flush(), LOOK, Clean(percent=86), LOOK, FULL, REPUT, LOOK),
        {"log_files_deleted": 1, "held_pull_OFFSET_TOO_SMALL": 1},
    ),
    "reads are switched off": (
        Settings(), (PULL, SwitchFlag(bit=1), PULL, PUT, REPUT, LOOK), {"pull_held": 1, "held_pull_woken": 1},
    ),
    "it is given up": (Settings(), (PULL, CancelPull(), PUT, REPUT, LOOK), {"pull_cancelled": 1}),
    "the process dies": (Settings(), (PULL, Crash(kill=True), PULL, Close(), Open()), {"held_pull_closed": 1}),
    "dispatch comes first": (
        Settings(), (PUT, PullWhileDispatching(schedule=(1,)), LOOK), {"answered_beside_dispatch": 1},
    ),
    "dispatch comes behind": (
        Settings(), (PUT, PullWhileDispatching(), LOOK), {"held_beside_dispatch": 1, "held_pull_FOUND": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_it_is_as_the_model_says_and_it_happened(case: str, tracker: DirtyTracker) -> None:
    settings, operations, effects = CASES[case]
    trial = lockstep_of(settings, tracker=tracker)
    for operation in operations:
        trial.run(operation)
    assert {effect: trial.coverage[effect] for effect in effects} == effects
