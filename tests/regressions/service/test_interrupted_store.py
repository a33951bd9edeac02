"""A store can be closed after an interrupt of a call, and keeps what it acknowledged.

Symptom: a close that a Ctrl-C had interrupted was repeated, by `with` for example. The next open then showed queues
without their messages, or the lock was never released. After an interrupted put the close could wait forever, and after
an interrupted pull it could raise KeyError.
Cause: the second close flushed and proved queues that the first one had closed already. A descriptor could be closed
twice. A waiting put held the condition of its future, which the flushing thread needs. A waiting pull was in one of two
tables.
Fix: a close that was interrupted records no clean exit, and goes on where files are closed already (impl/store.py,
`MessageStore.close`). Closing a descriptor twice does nothing, answers are awaited without a lock, and a pull gets into
the table of all pulls last.
Found by: interrupting each call at each place where CPython runs signal handlers.
"""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.impl.interrupts import is_interrupted
from tornpage import FlushDiskType, Message, MessageStore, MessageStoreConfig
from tornpage.impl.message.message import GetStatus

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # interrupted finalisers
PATIENCE_S = 30
FOUR = [Message("t", body=b"%d" % number) for number in range(4)]


def config(sync: bool) -> MessageStoreConfig:
    return MessageStoreConfig(
        mapped_file_size_commit_log=1 << 16,
        mapped_file_size_consume_queue=20 * 100,
        max_hash_slot_num=100,
        max_index_num=400,
        flush_disk_type=FlushDiskType.SYNC_FLUSH if sync else FlushDiskType.ASYNC_FLUSH,
    )


def in_time(act: Callable[[], object]) -> object:
    """Return the result of a call in a thread. Fails if it takes too long or raises."""
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(act()), daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert results, "the call waits, or has raised"
    return results[0]


def require_kept(directory: Path, *, sync: bool, acknowledged: int) -> None:
    """Require that the store opens, and that its queue has the first messages."""
    with MessageStore.open(directory, config(sync)) as store:
        in_time(store._reput.drain)
        with store.get_message("t", 0, 0) as answer:
            assert answer.status is GetStatus.FOUND
            bodies = [buffer.message().body for buffer in answer.messages]
        assert bodies[:acknowledged] == [message.body for message in FOUR[:acknowledged]]


def commit_offset(store: MessageStore) -> None:
    store.commit_offset("g", "t", 0, 2)
    store.save_offsets()


def clean(store: MessageStore) -> None:
    store.delete_expired_files_manually()
    store.clean_unused_topics(("t",))


CALLS: dict[str, Callable[[MessageStore], object]] = {
    "close": MessageStore.close,
    "put": lambda store: store.put(FOUR[3]),
    "put_async": lambda store: store.put_async(FOUR[3]).result(PATIENCE_S),
    "get_message": lambda store: store.get_message("t", 0, 0).release(),
    "query_message": lambda store: store.query_message("t", "k").release(),
    "pull_async": lambda store: store.pull_async("g", "t", queue_id=0, offset=3, hold_ms=60_000),
    "commit_offset": commit_offset,
    "clean": clean,
}


def interrupt(directory: Path, name: str, *, sync: bool, stride: int, first: int) -> None:
    """Interrupt a call at every `stride`-th place, each time in a new store."""
    place, is_over = first, False
    while not is_over:
        root = directory / str(place)
        store = MessageStore.open(root, config(sync))
        for message in FOUR[:3]:
            assert store.put(message).stored
        if name != "close":  # which dispatches
            store._reput.drain()
        is_over = not is_interrupted(lambda store=store: CALLS[name](store), place)  # type: ignore[misc]
        in_time(store.close)
        require_kept(root, sync=sync, acknowledged=3)
        place += stride


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("name", CALLS)
def test_some_interrupts(tmp_path: Path, name: str, sync: bool) -> None:
    interrupt(tmp_path, name, sync=sync, stride=29 if name == "close" else 11, first=2)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("name", CALLS)
def test_all_interrupts(tmp_path: Path, name: str, sync: bool, first: int) -> None:
    interrupt(tmp_path, name, sync=sync, stride=4, first=first)
