"""A drain ends if a dispatch leaves records and does nothing.

Symptom: a close of a broken store (planted bug RMQ-B04) used a core without end, so `bugs score` counted a hung trial.
Cause: the drain began another round while bytes were left, although the last one had moved nothing.
Fix: another round begins only if the readable end has moved (impl/dispatch/reput.py, `ReputMessages.drain`).
Found by: `tornpage bugs score RMQ-B04 --strategy covering --clock cpu --budget 15 --seed 19`.
"""

from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, open_store
from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.parts import Parts


class Stuck(Derived):
    """A dispatcher that does nothing."""

    calls = 0

    def dispatch(self, *_: object) -> bool:
        """Do nothing, a hundred times at most."""
        Stuck.calls += 1
        assert Stuck.calls < 100, "the drain has no end"
        return False


@pytest.mark.parametrize("times", [1, 3])
def test_a_drain_without_progress_ends(tmp_path: Path, times: int) -> None:
    Stuck.calls = 0
    with open_store(tmp_path, parts=Parts({Derived: Stuck})) as store:
        for _ in range(times):
            assert store.put(MESSAGE).stored
    assert Stuck.calls > 0
