"""Test the page of a foreign store's failure, with and without a crash."""

from typing import Any

import pytest

from tests.properties.foreign.test_promises import Log, RecoveredLog
from tornpage.model.operations import Close, Crash, Open, Operation, Put
from tornpage.properties.campaign.replay import replay
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.explain.evidence import Witness
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.properties.program.case import Case, Settings
from tornpage.render.counterexample import page_of

pytestmark = pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")
__all__ = ["RecoveredLog"]


class Forgets(Log):
    """Forgets the last line at an open."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self._lines = self._lines[:-1]


class OtherNumber(Log):
    """Returns a wrong number for the second put."""

    def put(self, *given: Any) -> tuple[int, int]:
        offset, number = super().put(*given)
        return offset, number + (number > 0)


@pytest.mark.parametrize(
    ("store", "operations", "said"),
    [
        ("Forgets", (Put(body_bytes=8), Crash(kill=True)), ["the process is killed, at rest", "1 message</dd>"]),
        ("Forgets", (Put(body_bytes=8), Crash(kill=True, back=2)), []),
        ("Forgets", (Put(body_bytes=8), Open()), ["answered: 1 message, 1 promised"]),
        ("OtherNumber", (Put(body_bytes=8), Put(body_bytes=8)), ["a put returns another number"]),
        (
            "RecoveredLog",
            (Put(body_bytes=8), Crash(kill=True, back=2), Crash()),
            ["size /log", "1 message</dd>", "the power fails, at rest"],
        ),
        ("Forgets", (Put(body_bytes=8), Close(), Crash()), ["answered: 1 message"]),
    ],
)
def test_page_tells_the_failure(store: str, operations: tuple[Operation, ...], said: list[str]) -> None:
    case = Case(Settings(target=f"{__file__}:{store}"), operations)
    with choose_tracker("auto") as tracker:
        failure = replay(case, tracker=tracker, witness=Witness())
    if not said:
        assert failure is None, "a put without an answer may be lost"
        return
    assert failure is not None
    page = page_of(failure)
    assert [each for each in said if each not in page] == []
