"""Minimal reproducers of the RocketMQ 4.9.3 defects G1, G2, G7, F1 and F2.

Each one holds in this store and breaks a promise when its defect is planted. The others have theirs in
tests/properties/planted/test_smallest_cases.py.
Found by: `tornpage bugs holes --hunt` (docs/holes.md), then made smaller by hand.
"""

from tests.support.regressions import Attempt, breaks_only_with
from tornpage.model.operations import Crash, Flush, HarmDerived, HarmField, OpenTwice, Put, Step
from tornpage.properties.program.case import Settings

FIRST = "/store/commitlog/00000000000000000000"


def test_g1_empty_newest_file_is_no_obstacle(attempt: Attempt) -> None:
    """The process is killed while it makes a file; RocketMQ has left one too."""
    breaks_only_with("G1", attempt, (Put(), Crash(kill=True, back=5)), contract=7)
    operations = (Put(), HarmField(field="ahead"))
    breaks_only_with("G1", attempt, operations, Settings(file_bytes=1024, trailer=False), contract=7, bug="RMQ-B08")


def test_g2_stray_file_is_no_obstacle(attempt: Attempt) -> None:
    """A text file lies in the directory of a queue."""
    breaks_only_with("G2", attempt, (Put(), HarmDerived(file="queue", harm="stray")), contract=7)


def test_g7_second_opener_touches_nothing(attempt: Attempt) -> None:
    """A second process opens the store while it is open."""
    breaks_only_with("G7", attempt, (Put(), OpenTwice()), contract=14)


def test_f1_second_recovery_brings_nothing_back(attempt: Attempt) -> None:
    """The cut is erased in memory only."""
    operations = (Put(), Flush(), Put(body_bytes=4200), Put(body_bytes=4000), Crash(survived={f"page {FIRST} 2": 1}))
    breaks_only_with("F1", attempt, operations, contract=3)


def test_f2_clean_exit_delivers_nothing_again(attempt: Attempt) -> None:
    """Two messages of one level are delivered in one round."""
    delayed = Put(properties="DELAY\x011")
    operations = (delayed, delayed, Step(service="reput"), Step(service="schedule", after_ms=1_000))
    breaks_only_with("F2", attempt, operations, contract=12)
