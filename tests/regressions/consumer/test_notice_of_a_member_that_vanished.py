"""A member whose request makes the broker remove another one gets a notice of that.

Symptom: a member stayed without the queues of a vanished one up to 20 seconds longer than the others of its group.
Cause: the broker looks for old heartbeats in each request about members. It announced what it found to all members
except for the sender of the request.
Fix: removals are announced to all members before the request is carried out (impl/consumer/broker.py).
Found by: the operation `use_members` of `tornpage explore consumers`, 319 seeds.
"""

from pathlib import Path

import pytest

from tests.support.impl.stores import config_of, open_store
from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.requests import Heartbeat, LockQueues, Members, MembersChanged, Request, Subscription

_BEAT = Heartbeat("g", "a", (Subscription("orders"),))


@pytest.mark.parametrize("request_of_a", [_BEAT, LockQueues("g", incarnation="a"), Members("g", "orders")])
def test_sender_gets_the_notice(tmp_path: Path, request_of_a: Request) -> None:
    with open_store(tmp_path / "store", config=config_of(file_bytes=1 << 20)) as store:
        broker = ConsumerBroker(store, now_ms=0)
        broker.handle(Heartbeat("g", "b", (Subscription("orders"),)), "b", 0)
        broker.handle(_BEAT, "a", 100_000)
        assert broker.notices("a") == []
        broker.handle(request_of_a, "a", 130_000)
        assert broker.notices("a") == [MembersChanged("g")]
