"""Fixtures of the tests of consumers."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.impl.consumers import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Return a maker of worlds in one directory; the last one is closed at the end."""
    made: list[World] = []

    def make(**how: Any) -> World:
        made.append(World(tmp_path / "store", **how))
        return made[-1]

    yield make
    for each in made:
        each.close()
