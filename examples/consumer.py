"""Two consumers of one group: orders, a retry, and the lag.

python examples/consumer.py
"""

import tempfile
import threading
import time

from tornpage import Message, MessageStore, MessageStoreConfig
from tornpage.consumer import (
    BrokerSettings,
    ConcurrentStatus,
    ConsumeFromWhere,
    ConsumerBroker,
    ConsumerSettings,
    RunningConsumer,
    monotonic_ms,
)

ORDERS, QUEUES = 200, 4


class Orders:
    """Counts orders. The first try of order 7 fails."""

    def __init__(self):
        self.guard = threading.Lock()
        self.tries, self.taken_by = {}, {}

    def listener(self, member):
        """Return the listener of a member."""

        def listen(messages, context):
            for message in messages:  # one, unless consume_message_batch_max_size is larger
                number = int(message.body)
                with self.guard:
                    self.tries[number] = self.tries.get(number, 0) + 1
                    self.taken_by[number] = member
                if number == 7 and self.tries[number] == 1:
                    context.delay_level = 1  # again after a second
                    return ConcurrentStatus.RECONSUME_LATER
            return ConcurrentStatus.CONSUME_SUCCESS

        return listen


def main():
    """Consume some orders with two members."""
    orders = Orders()
    config = MessageStoreConfig(mapped_file_size_commit_log=1 << 20)
    with tempfile.TemporaryDirectory() as directory, MessageStore.open(directory, config) as store:
        settings = BrokerSettings(owners_survive=False, default_queue_nums=QUEUES)
        broker = ConsumerBroker(store, settings, now_ms=monotonic_ms())
        members = [
            RunningConsumer(
                ConsumerSettings(
                    consumer_group="billing",
                    client_id=name,
                    consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
                ),
                {settings.broker_name: broker},
                orders.listener(name),
            )
            for name in ("first", "second")
        ]
        for member in members:
            member.subscribe("orders")
        with members[0], members[1]:
            while not all(len(member.assigned()) > 1 for member in members):
                time.sleep(0.01)  # both have joined and share the queues
            for number in range(ORDERS):
                store.put(Message("orders", b"%d" % number, queue_id=number % QUEUES))
            while sum(orders.tries.values()) < ORDERS + 1:
                time.sleep(0.01)
            shares = [len([queue for queue in member.assigned() if queue.topic == "orders"]) for member in members]
        stored = store.consumer_offsets("orders")["billing"]
    print(f"{len(orders.tries)} orders, order 7 was delivered {orders.tries[7]} times")
    print(f"queues of each member: {shares}; members that took orders: {sorted(set(orders.taken_by.values()))}")
    print(f"progress: {dict(sorted(stored.items()))}")


if __name__ == "__main__":
    main()
