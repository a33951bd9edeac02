"""Fixtures of the tests of the store."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.impl.killed import Killed, MakeKilled, message
from tests.support.impl.stores import caught_up, open_store


@pytest.fixture
def killed(tmp_path: Path) -> MakeKilled:
    """Return a maker of killed stores with `puts` records.

    The first `flushed` of them are on disk.
    """

    def make(puts: int, *, flushed: int = 0, trailer: bool = True) -> Killed:
        with open_store(tmp_path / "live", trailer=trailer) as store:
            results = []
            for number in range(puts):
                results.append(store.put(message(number)))
                if number + 1 == flushed:
                    store.flush()
            caught_up(store)
            shutil.copytree(tmp_path / "live", tmp_path / "killed")
        return Killed(tmp_path / "killed", tuple(results))

    return make


@pytest.fixture
def switch_often() -> Iterator[None]:
    """Let threads take turns a thousand times more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(before)
