"""A zygote that dies with an unread request is ended cleanly.

Symptom: a run of kills that ended with a fault of the harness could end with a traceback instead, "Connection reset by
peer". It left its second zygote running, and its directories in memory.
Cause: a zygote that is ended with an unread request in its socket resets the connection. The parent receives the reset
while it waits for the end of the zygote or of the session.
Fix: a reset counts as an end (properties/explore/kills/zygote.py, `_heard`).
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
    """Return a stopped zygote with a request that it has not read."""
    zygote = Zygote(Parts())
    os.kill(zygote._pid, signal.SIGSTOP)
    os.waitpid(zygote._pid, os.WUNTRACED)
    zygote.start([LIFE])
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
