"""Symptom: a run of kills that ended with a fault of the harness could end with a traceback instead, "Connection reset
by peer", leave its second zygote behind, and its directories in memory.

Cause: a zygote that is ended with a life in its socket that it has not read resets the connection, which the parent
meets where it waits for the zygote's end, or for the end of the life.
Fix: a reset says what an end says (properties/explore/kills/zygote.py, `_heard`).
Found by: reading.
"""

import os
import signal

import pytest

from tornpage.impl.parts import Parts
from tornpage.properties.contract import HarnessError
from tornpage.properties.explore.kills.child import Session
from tornpage.properties.explore.kills.zygote import Zygote
from tornpage.properties.program.case import Settings

LIFE = Session("/nowhere", Settings(), (), 0, "step")


@pytest.fixture
def stopped() -> Zygote:
    """Return a zygote that has a life to begin, and does not get to it."""
    zygote = Zygote(Parts())
    os.kill(zygote._pid, signal.SIGSTOP)
    os.waitpid(zygote._pid, os.WUNTRACED)
    zygote.start(LIFE)
    return zygote


def test_it_is_ended_all_the_same(stopped: Zygote) -> None:
    stopped.end()
    with pytest.raises(ProcessLookupError):
        os.kill(stopped._pid, 0)


def test_who_waits_for_the_life_hears_that_nobody_knows(stopped: Zygote) -> None:
    os.kill(stopped._pid, signal.SIGKILL)
    with pytest.raises(HarnessError, match="ended before the life"):
        stopped.wait()
    stopped.end()
