"""Test syncs that are held.

An answer of the store may come before them, and a crash then loses the write.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tornpage.properties.disk.images import compose, disk_state
from tornpage.properties.foreign.process import StoreProcess
from tornpage.properties.foreign.spec import CommandSpec
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.properties.foreign.watching import WatchedDirectory

PROGRAM = """
import json, os, sys
file = os.open(sys.argv[1] + "/log", os.O_RDWR | os.O_CREAT)
for line in sys.stdin:
    os.write(file, b"entry")
    if json.loads(line)["do"] == "sync":
        os.fsync(file)
    print("{}", flush=True)
"""


class Enough(Exception):
    """Raised while an answer is waited for."""


def after_looks(count: int) -> Callable[[], None]:
    """Return a function whose call raises Enough after some calls."""
    left = iter(range(count))

    def look() -> None:
        if next(left, None) is None:
            raise Enough

    return look


def test_a_held_sync_begins_when_it_is_released(tmp_path: Path) -> None:
    if reason := why_untraceable():
        pytest.skip(reason)
    watched = WatchedDirectory(tmp_path)
    spec = CommandSpec((sys.executable, "-S", "-c", PROGRAM, "{dir}"))
    process = StoreProcess(spec, tmp_path, watched=watched, answer_seconds=30)
    try:
        assert process.ask("sync") == {}
        assert process.ask("write") == {}
        process.hold_syncs(True)
        assert process.ask("write") == {}
        process.meanwhile = after_looks(50)
        with pytest.raises(Enough):
            process.ask("sync")
        process.meanwhile = after_looks(1 << 30)
        recorded = watched.until(watched.mark())
        state = disk_state(recorded.base, recorded.journal, recorded.events[-1], disk="journal")
        (content,) = compose(state, {}).files.values()
        assert content.rstrip(b"\0") == b"entry"
        process.hold_syncs(False)
        assert process.ask("write") == {}  # the answer to the sync
        recorded = watched.until(watched.mark())
        state = disk_state(recorded.base, recorded.journal, recorded.events[-1], disk="journal")
        (content,) = compose(state, {}).files.values()
        assert content.rstrip(b"\0") == b"entry" * 4
    finally:
        process.kill()


def test_other_processes_go_on_while_one_is_waited_for(tmp_path: Path) -> None:
    spec = CommandSpec((sys.executable, "-S", "-c", PROGRAM, "{dir}"))
    process = StoreProcess(spec, tmp_path, answer_seconds=30)
    calls: list[int] = []
    process.meanwhile = lambda: calls.append(process.id)
    try:
        process.ask("sync")
        assert set(calls) == {process.id}
    finally:
        process.kill()
