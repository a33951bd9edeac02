"""Test a member from its first heartbeat to its shutdown."""

from collections.abc import Callable

from tests.support.impl.consumers import TOPIC, World
from tornpage.impl.consumer.queues import MessageQueue

MakeWorld = Callable[..., World]


def test_member_consumes_all_messages_and_leaves(world: MakeWorld) -> None:
    here = world(queues=2)
    here.put("a", "b", "c")
    here.put("d", queue_id=1)
    member = here.join()
    here.settle()
    assert member.assigned() == [
        MessageQueue("%RETRY%group", "broker-a", 0),
        MessageQueue(TOPIC, "broker-a", 0),
        MessageQueue(TOPIC, "broker-a", 1),
    ]
    assert sorted(here.consume()) == ["a", "b", "c", "d"]
    member.shutdown(here.now_ms)
    here.settle()
    assert member.is_closed
    assert (here.stored(0), here.stored(1)) == (3, 1)
