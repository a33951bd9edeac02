"""A check during a close raises StoreClosed.

Symptom: `check()` failed with an AssertionError when another thread closed the store.
Cause: a store that closes releases its files, and the compared offsets were those of an empty log.
Fix: a failed check tests again whether the store is open, and raises StoreClosed (impl/store.py, `check`).
Found by: the test with four producers, a checker and a closer (tests/impl/store/test_stress.py).
"""

from pathlib import Path

import pytest

from tests.support.impl.stores import MESSAGE, HandRunner, open_store
from tornpage.impl.errors import StoreClosed
from tornpage.impl.log.mapped_file_queue import MappedFileQueue
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore


def test_it_is_told_that_the_store_is_closed(tmp_path: Path) -> None:
    stores: list[MessageStore] = []

    class ClosedMeanwhile(MappedFileQueue):
        """Close the store in another thread as the check begins."""

        def check(self) -> None:
            stores[0].close()
            super().check()

    parts = Parts({ThreadRunner: HandRunner(), MappedFileQueue: ClosedMeanwhile})
    stores.append(open_store(tmp_path, parts=parts))
    stores[0].put(MESSAGE)
    with pytest.raises(StoreClosed):
        stores[0].check()
