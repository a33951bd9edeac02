"""A put is answered even if counting the answer fails.

Symptom: a future of `put_async` was never done, and a `put` in its own thread waited forever (contract 16).
Cause: the statistics take the answer before it is given. When that raised, as with a failing clock, the known answer
was not given.
Fix: the answer is given in any case (impl/put/put_answers.py, `PendingAnswer`).
Found by: a review.
"""

from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, HandRunner, SetClock, open_store
from tornpage.impl.message.message import PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner


class BreakingClock(SetClock):
    """A clock that fails while it is broken."""

    broken = False

    def __call__(self) -> int:
        if self.broken:
            raise OSError("the clock is broken")
        return super().__call__()


def test_answer_is_given_in_any_case(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock, runner = BreakingClock(), HandRunner()
    with open_store(tmp_path, sync=True, clock=clock, parts=Parts({ThreadRunner: runner})) as store:
        answers = [store.put_async(MESSAGE) for _ in range(3)]
        clock.broken = True
        runner.step()
        clock.broken = False
        assert [answer.result(timeout=0).status for answer in answers] == [PutStatus.PUT_OK] * 3
    assert "count_failed" in caplog.text
