"""A store opens on a crash image that has a log file of more than 4 MiB.

Symptom: `tornpage sim choose --check` at 2,000 messages/s ended with an AttributeError.
Cause: the lab holds such a file as its pages, and made a changeable copy of it as if it were a sequence of numbers.
Fix: the copy is made from its bytes (properties/disk/disk.py, `InodeState.own_latest`).
Found by: checks of chosen policies on a recorded disk.
"""

import pytest

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.message import Message
from tornpage.impl.store import MessageStore
from tornpage.properties.disk.dirty import CompareTracker
from tornpage.properties.disk.disk import DiskState
from tornpage.properties.disk.images import compose
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles
from tornpage.properties.disk.sparse import LARGE_BYTES
from tornpage.properties.program.case import Disk

CONFIG = MessageStoreConfig(
    mapped_file_size_commit_log=LARGE_BYTES + 4096,
    mapped_file_size_consume_queue=20_000,
    max_hash_slot_num=64,
    max_index_num=256,
    mapped_files_ahead=0,
)


@pytest.mark.parametrize("disk", ["posix-strict", "kill"])
def test_a_store_with_a_large_file_opens_after_a_crash(disk: Disk) -> None:
    files = RecordingFiles(EMPTY_DISK, tracker=CompareTracker())
    with MessageStore.open("/store", CONFIG, files=files, clock=lambda: 1_000) as store:
        end = store.put(Message("T", b"body")).size_bytes
        store.flush()
        state = DiskState(EMPTY_DISK, disk=disk)
        state.apply_all(files.journal)
        again = RecordingFiles(compose(state, {}), tracker=CompareTracker())
        with MessageStore.open("/store", CONFIG, files=again, clock=lambda: 1_000) as recovered:
            assert recovered.max_offset == end
