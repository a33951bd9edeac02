"""A roll adds the next file only after the blank of the old one.

Symptom: while a put rolled over, `check()` of another thread failed, and a failed blank moved `max_offset` back.
Cause: the next file was added before the blank of the file before it was written. The offsets in between counted as
written and as committed. A failed blank removed the file again while commits and flushes used it (contract 9).
Fix: the next file is made first, then the blank is written, and only then the file is added
(impl/log/mapped_file_queue.py, `next_file`, `add`, `give_back`; impl/log/commit_log.py, `_file_with_room`).
Found by: a review for races.
"""

import errno
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from tests.support.impl.stores import HandRunner, config_of, open_store
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore

BIG = Message("T", bytes(600))
"""Two of these do not fit into a file of 1,024 bytes."""


class LooksBeforeItsBlank(MappedFile):
    """Another thread calls `look` just before the blank is written, which may fail after that."""

    look: ClassVar[Callable[[], None]]
    refused: ClassVar[bool]

    def append_blank(self) -> None:
        looker = threading.Thread(target=type(self).look)
        looker.start()
        looker.join(timeout=10)
        if type(self).refused:
            raise OSError(errno.EIO, "refused")
        super().append_blank()


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("pool_buffers", [0, 1, 3])
def test_offsets_are_those_of_the_records_while_a_put_rolls_over(
    pool_buffers: int, refused: bool, tmp_path: Path
) -> None:
    seen: list[tuple[int, int, int]] = []
    wrong: list[BaseException] = []

    class Looking(LooksBeforeItsBlank):
        """The class of this store."""

    def look() -> None:
        try:
            store.check()
            seen.append((store.flushed_offset, store.committed_offset, store.max_offset))
            store.flush()
            store.check()
            seen.append((store.flushed_offset, store.committed_offset, store.max_offset))
        except BaseException as error:
            wrong.append(error)

    config = replace(
        config_of(), transient_store_pool_enable=pool_buffers > 0, transient_store_pool_size=pool_buffers or 1
    )
    store: MessageStore = open_store(
        tmp_path, config=config, parts=Parts({MappedFile: Looking, ThreadRunner: HandRunner()})
    )
    Looking.look, Looking.refused = look, refused
    with store:
        end = store.put(BIG).size_bytes
        status = store.put(BIG).status
        assert wrong == []
        assert status is (PutStatus.UNKNOWN_ERROR if refused else PutStatus.PUT_OK)
        assert seen == [(0, 0 if pool_buffers else end, end), (end, end, end)]
        assert store.max_offset >= end
        store.check()
        Looking.refused, Looking.look = False, lambda: None
        assert store.put(BIG).status is PutStatus.PUT_OK
        assert store.flush().durable
    with open_store(tmp_path) as found:
        assert len(list(found.messages())) == (2 if refused else 3)
