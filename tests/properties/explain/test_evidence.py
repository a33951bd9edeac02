"""Test the explanation of a counterexample: answers, losses, the log, and recovery."""

from typing import Any

from tornpage.model.operations import Crash, Operation, Put
from tornpage.properties.campaign.replay import replay
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explain.evidence import Witness
from tornpage.properties.program.case import Case, Settings

LOG = "/store/commitlog/00000000000000000000"
SETTINGS = Settings(file_bytes=1024, bug="size-not-synced")
PUTS: tuple[Operation, ...] = (Put(body_bytes=300), Put(body_bytes=600))


def told_of(case: Case, tracker: DirtyTracker) -> dict[str, Any]:
    """Return the explanation of a case that fails."""
    failure = replay(case, tracker=tracker, witness=Witness())
    assert failure is not None
    told = failure.account()
    assert told is not None
    return told


def test_a_power_loss_is_told(tracker: DirtyTracker) -> None:
    told = told_of(Case(SETTINGS, (*PUTS, Crash(survived={f"size {LOG}": 0}, others="kept"))), tracker)
    assert (told["losses"], told["lost_pages"]) == (1, 0)
    assert [operation["answer"][:20] for operation in told["lanes"]["operations"]] == [
        "answered: 1 record, ", "answered: 2 records,", "",
    ]  # fmt: skip
    assert {"fact": f"size {LOG}", "fate": "lost"} in told["facts"]
    assert [record["on_disk"] for record in told["records"]] == [False, True]
    assert "short_file" in str(told["decisions"])
    assert f"{LOG}: 0 bytes, initial size, never synced before the crash" in told["certificate"]


def test_a_put_that_the_crash_cut_short_has_not_answered(tracker: DirtyTracker) -> None:
    crash = Crash(back=1, survived={f"size {LOG}": 0}, others="kept")
    told = told_of(Case(SETTINGS, (*PUTS, crash)), tracker)
    answers = [operation["answer"] for operation in told["lanes"]["operations"]]
    assert answers[1] == "no answer yet"


def test_an_answer_stands_beside_the_operation_that_gave_it(tracker: DirtyTracker) -> None:
    """An operation that failed before its answer got the answer of the one before it.

    All later operations were shifted too.
    """
    settings = Settings(file_bytes=2048, bug="larger-than-a-file")
    puts = (Put(body_bytes=100), Put(body_bytes=200), Put(body_bytes=5_000))
    told = told_of(Case(settings, puts), tracker)["lanes"]["operations"]
    assert [operation["answer"][:19] for operation in told] == ["answered: 1 record,", "answered: 2 records", ""]


def test_a_case_without_a_crash_is_told_by_its_lanes(tracker: DirtyTracker) -> None:
    told = told_of(Case(Settings(bug="early-acknowledgement", sync_flush=True), (Put(),)), tracker)
    assert told["lanes"]["crash"] == -1
    assert told["pages"] == told["hexes"] == told["records"] == ()
