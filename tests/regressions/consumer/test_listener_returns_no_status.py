"""A listener that returns no status of its kind has failed, and a finding names the value.

Symptom: an orderly listener that returned a list ended its thread with TypeError, and its queue was not consumed any
more. One that returned False counted as success. A concurrent listener that returned OrderlyStatus.SUCCESS failed
without a word.
Cause: the value was compared with some of the statuses only.
Fix: a value of another type is a failure of the batch, with a finding (impl/consumer/running.py).
Found by: reading the code.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.impl.consumers import wait_for
from tests.support.impl.stores import config_of, open_store
from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.messages import ConcurrentStatus, ConsumerMessage, OrderlyStatus
from tornpage.impl.consumer.running import ConsumeContext, RunningConsumer, monotonic_ms
from tornpage.impl.consumer.settings import BrokerSettings, ConsumeFromWhere, ConsumerSettings
from tornpage.impl.message.message import Message


@pytest.mark.parametrize("orderly", [True, False])
@pytest.mark.parametrize("value", [[None], False, "CONSUME_SUCCESS", "other"])
def test_wrong_status_fails_the_batch(tmp_path: Path, orderly: bool, value: object) -> None:
    if value == "other":
        value = ConcurrentStatus.CONSUME_SUCCESS if orderly else OrderlyStatus.SUCCESS
    times: list[int] = []

    def listen(messages: Sequence[ConsumerMessage], context: ConsumeContext) -> OrderlyStatus | None:
        times.append(messages[0].reconsume_times)
        context.suspend_ms = 10
        return value if len(times) == 1 else None  # type: ignore[return-value]

    settings = ConsumerSettings(
        consumer_group="g",
        client_id="a",
        orderly=orderly,
        consume_thread_max=1,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        max_reconsume_times=3 if orderly else 0,
    )
    with open_store(tmp_path / "store", config=config_of(file_bytes=1 << 20)) as store:
        store.put(Message("orders", b"x", 0))
        broker = ConsumerBroker(store, BrokerSettings(owners_survive=False), now_ms=monotonic_ms())
        with RunningConsumer(settings, {"broker-a": broker}, listen) as consumer:
            consumer.subscribe("orders")
            wait_for(lambda: len(times) == 2 if orderly else bool(store.message_total_in_queue("%DLQ%g", 0)))
            assert any("no status" in each and repr(value) in each for each in consumer.findings)
