"""A lock owner that answers nonsense or hangs is a fault of the harness.

Symptom: restarts of a store ended with a traceback where the process that holds it gave an invalid answer, or did not
end after a close, as with a hanging thread.
Cause: each answer was read as JSON with all its keys, and the time-out of the wait for the end was not caught.
Fix: both are faults of the harness (properties/explore/kills/restarts.py, `_Holder`).
Found by: reading.
"""

import sys
from pathlib import Path

import pytest

from tornpage.properties.contract import HarnessError
from tornpage.properties.explore.kills import restarts

OPENS = 'print(\'{"serves": [], "read_only": null, "compiled": false}\', flush=True)'
MARKS = "import json, os, sys; d = json.loads(input())['directory']; os.makedirs(d); open(d + '/abort', 'w')"
HANGS = "import signal; input(); os.remove(d + '/abort'); print('{\"read_only\": null}', flush=True); signal.pause()"


@pytest.mark.parametrize("answer", ["", "nonsense", "[]", "7", "{}", '{"refused"', "[" * 100_000], ids=range(7))
def test_an_answer_that_is_none(tmp_path: Path, answer: str) -> None:
    holder = (sys.executable, "-P", "-c", f"input(); print({answer!r})")
    with pytest.raises(HarnessError, match="the holder"):
        restarts.run_restarts(1, seed=0, directory=tmp_path, holder=holder)
    assert list(tmp_path.iterdir()) == []


def test_a_holder_that_does_not_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarts._Holder, "leave", lambda holder: leave(holder, monkeypatch))
    holder = (sys.executable, "-P", "-c", f"{MARKS}; {OPENS}; {HANGS}")
    with pytest.raises(HarnessError, match="the holder has not ended"):
        restarts.run_restarts(0, seed=0, directory=tmp_path, holder=holder)
    assert list(tmp_path.iterdir()) == []


leave_for_real = restarts._Holder.leave


def leave(holder: restarts._Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait only 10 ms after the request to close."""
    with monkeypatch.context() as patch:
        patch.setattr(restarts, "_PATIENCE_S", 0.01)
        leave_for_real(holder)
