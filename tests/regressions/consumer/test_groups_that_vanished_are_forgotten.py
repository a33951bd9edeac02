"""The broker keeps nothing of a group without members, and no notice for a lost client.

Symptom: each group that ever had a member kept an entry in the table of members, and each scan walked over all of them.
A client that died kept its notices. Both grew as long as the broker lived.
Cause: removing the last member kept its empty group, and only the client itself took its notices.
Fix: a group ends with its last member, and notices end with the last membership of their client
(impl/consumer/member_table.py, impl/consumer/broker.py).
Found by: reading the code.
"""

from pathlib import Path

import pytest

from tests.support.impl.stores import config_of, open_store
from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.requests import Heartbeat, Leave, MembersChanged, Subscription
from tornpage.impl.consumer.settings import BrokerSettings

_SUBSCRIBED = (Subscription("orders"),)


def _beat(broker: ConsumerBroker, group: str, client_id: str, now_ms: int) -> None:
    broker.handle(Heartbeat(group, client_id, _SUBSCRIBED), client_id, now_ms)


@pytest.mark.parametrize("end", ["leave", "disconnect", "expire"])
def test_nothing_is_left_of_a_group_that_vanished(tmp_path: Path, end: str) -> None:
    with open_store(tmp_path / "store", config=config_of(file_bytes=1 << 20)) as store:
        broker = ConsumerBroker(store, BrokerSettings(channel_expired_timeout=120_000), now_ms=0)
        for number in range(5):
            for client_id in (f"{number}/a", f"{number}/b"):
                _beat(broker, f"group-{number}", client_id, 0)
        for number in range(5):
            for client_id in (f"{number}/a", f"{number}/b"):
                if end == "leave":
                    broker.handle(Leave(f"group-{number}", client_id), client_id, 1)
                elif end == "disconnect":
                    broker.disconnect(client_id)
        broker.step(200_000)
        assert broker._members._groups == {}
        assert broker._notices == {}


def test_members_that_stay_keep_their_notices(tmp_path: Path) -> None:
    with open_store(tmp_path / "store", config=config_of(file_bytes=1 << 20)) as store:
        broker = ConsumerBroker(store, now_ms=0)
        _beat(broker, "g", "a", 0)
        _beat(broker, "g", "b", 100_000)
        broker.step(130_000)
        assert broker.notices("b") == [MembersChanged("g")]
        assert broker.notices("a") == []
