"""Write our store for the matrix, in a process that the caller may kill.

`python -m tornpage.peers.matrix.writing DIRECTORY COUNT SEED CHECKSUM` puts the operations, waits for dispatch and
delivery, and prints the answers of the store as one line of JSON. Then it reads a line: `close` closes the store.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep, time_ns

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.kernels.compiled import compiled_parts
from tornpage.impl.message.message import Message, MessageBatch
from tornpage.impl.store import MessageStore
from tornpage.peers.errors import PeerFailed
from tornpage.peers.matrix.answers import Answers, answers_of_ours
from tornpage.peers.matrix.workload import config_of, operations

__all__ = ["DELIVERY_S", "open_ours", "settle", "wait_for", "write_ours"]

DELIVERY_S = 2.3
"""Time after which messages of delay level 1 are delivered, in seconds."""

_WAIT_S = 30.0
_LOOK_S = 0.005


def _now_ms() -> int:
    return time_ns() // 1_000_000


def open_ours(directory: str | Path, config: MessageStoreConfig) -> MessageStore:
    """Open our store with the parts, the disk and the clock that a user gets."""
    return MessageStore.open(directory, config, files=OsFiles(), clock=_now_ms, parts=compiled_parts())


def wait_for(reached: Callable[[], bool], failure: str) -> None:
    """Wait until a condition holds. Raises PeerFailed after 30 s."""
    deadline = monotonic() + _WAIT_S
    while not reached():
        if monotonic() > deadline:
            raise PeerFailed(failure)
        sleep(_LOOK_S)


def settle(store: MessageStore) -> None:
    """Wait until everything is dispatched. Raises PeerFailed after 30 s."""
    wait_for(lambda: not store.dispatch_behind_bytes, "our store does not dispatch")


def write_ours(directory: Path, *, count: int, seed: int, record_checksum: str, closed: bool) -> Answers:
    """Write our store in another process; end it by a close or by SIGKILL.

    Return its answers before its end. Raises PeerFailed.
    """
    command = [sys.executable, "-P", "-m", __spec__.name]
    command += [str(directory), str(count), str(seed), record_checksum]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        line = child.stdout.readline()
        if closed and line:
            child.stdin.write(b"close\n")
            child.stdin.close()
            child.wait()
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        if not child.stdin.closed:
            child.stdin.close()
    if not line or (closed and child.returncode):
        raise PeerFailed(f"the writer of our store ended with {child.returncode}")
    return Answers.of(json.loads(line))


def _main(directory: str, count: str, seed: str, record_checksum: str) -> None:
    store = open_ours(directory, config_of(record_checksum=record_checksum))
    for each in operations(int(count), seed=int(seed)):
        if each.is_batch:
            result = store.put_batch(MessageBatch(each.topic, each.body, each.queue_id, each.properties))
        else:
            result = store.put(Message(each.topic, each.body, each.queue_id, each.properties))
        if not result.stored:
            raise PeerFailed(f"our store answers {result.status.name}")
    settle(store)
    sleep(DELIVERY_S)
    settle(store)
    print(json.dumps(answers_of_ours(store).document()), flush=True)
    if sys.stdin.readline() == "close\n":
        store.close()
    else:
        os._exit(1)


if __name__ == "__main__":
    _main(*sys.argv[1:])
