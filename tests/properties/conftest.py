"""A page tracker for each test of the crash lab."""

from collections.abc import Iterator

import pytest

from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker


@pytest.fixture
def tracker() -> Iterator[DirtyTracker]:
    with choose_tracker("auto") as made:
        yield made
