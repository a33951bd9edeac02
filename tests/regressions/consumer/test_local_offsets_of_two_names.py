"""Two names of groups or clients never share one file of local progress.

Symptom: the broadcasting consumers of the groups `a/b` and `a_b` with one client id read and wrote the same
`offsets.json`. The second one began at the progress of the first, and skipped messages.
Cause: a slash in a name became `_`, which another name may have in its place.
Fix: a slash becomes `%2F`, and a name that has this text is escaped (impl/consumer/offset_store.py).
Found by: reading the code.
"""

from itertools import combinations
from pathlib import Path

import pytest

from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.settings import ConsumerSettings, MessageModel
from tornpage.impl.io.os_files import OsFiles

_NAMES = ("a/b", "a_b", "a%2Fb", "a%252Fb", "a%25252Fb", "a%b", "a%25b", "a/%2Fb", "/a/b")
_QUEUE = MessageQueue("orders", "broker-a", 0)


def _consumer(directory: Path, *, group: str = "g", client_id: str = "c") -> PushConsumer:
    settings = ConsumerSettings(consumer_group=group, client_id=client_id, message_model=MessageModel.BROADCASTING)
    return PushConsumer(settings, {}, files=OsFiles(), directory=str(directory))


@pytest.mark.parametrize("what", ["group", "client_id"])
def test_each_name_has_a_file_of_its_own(tmp_path: Path, what: str) -> None:
    for number, name in enumerate(_NAMES, 1):
        consumer = _consumer(tmp_path, **{what: name})
        consumer._offsets.update(_QUEUE, number, increase_only=False)
        consumer._persist_now(0)
    found = {name: _consumer(tmp_path, **{what: name})._offsets.get(_QUEUE) for name in _NAMES}
    assert found == {name: number for number, name in enumerate(_NAMES, 1)}
    assert len(list(tmp_path.rglob("offsets.json"))) == len(_NAMES)
    assert all(first != second for first, second in combinations(found.values(), 2))


def test_folder_of_a_plain_name_is_that_of_rocketmq(tmp_path: Path) -> None:
    consumer = _consumer(tmp_path, group="orders%x", client_id="fe80::1%eth0@7")
    consumer._offsets.update(_QUEUE, 1, increase_only=False)
    consumer._persist_now(0)
    assert (tmp_path / "fe80::1%eth0@7" / "orders%x" / "offsets.json").exists()
