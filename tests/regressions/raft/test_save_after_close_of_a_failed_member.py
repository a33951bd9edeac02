"""A member that has failed writes nothing after its close.

Symptom: `save_commit_end` of a member that had failed and was closed wrote into a directory whose lock was released
(contract 14). The next owner of the directory could lose entries that it had made visible.
Cause: a failed member does not save at its close. A later save found something to write, and asked for no lock.
Fix: a save of a failed or closed member raises OSError. A close waits for a save that is under way before it releases
the directory (impl/raft/raft_store.py).
Found by: `tornpage bugs mutate --operator "removed lock" --seed 23`, as a failure of the store without a mutant.
"""

import pytest

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.message import Message
from tornpage.impl.raft.raft_store import Membership, RaftStore
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles

CONFIG = MessageStoreConfig(mapped_file_size_commit_log=1024, mapped_file_size_consume_queue=60)


def test_a_save_after_the_close_of_a_failed_member_writes_nothing() -> None:
    with choose_tracker("auto") as tracker:
        files = RecordingFiles(EMPTY_DISK, tracker=tracker)
        files.make_directory("/member")
        member = RaftStore.open(
            "/member", CONFIG, Membership(0, 1), files=files, clock=lambda: 1_700_000_000_000, send=lambda sent: None
        )
        member.election_timeout()
        member.sync()
        member.store.put_async(Message("T", b"1", queue_id=0))
        member.sync()
        member.store.put_async(Message("T", b"2", queue_id=0))
        files.failing_syncs = 1
        with pytest.raises(OSError, match="Input/output"):
            member.sync()
        member.close()
        events = len(files.journal)
        with pytest.raises(OSError, match="takes no events"):
            member.save_commit_end()
        assert len(files.journal) == events
