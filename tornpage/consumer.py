"""Consumers of a store in the same process: pull, push, rebalance, and their broker."""

from tornpage.impl.consumer.allocation import (
    STRATEGIES,
    Configured,
    ConsistentHash,
    MachineRoom,
    MachineRoomNearby,
    Strategy,
    Unconsumed,
    averagely,
    averagely_by_circle,
)
from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.connection import Call, CallError, Connection, DirectConnection
from tornpage.impl.consumer.holding import Holding, HoldingState
from tornpage.impl.consumer.lag import QueueLag
from tornpage.impl.consumer.messages import Batch, ConcurrentStatus, ConsumerMessage, OrderlyStatus
from tornpage.impl.consumer.process_queue import OffsetMap, ProcessQueue
from tornpage.impl.consumer.pull_consumer import PullConsumer
from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.queues import MessageQueue, dead_letter_topic, retry_topic
from tornpage.impl.consumer.requests import (
    Answer,
    Bounds,
    Lease,
    MembersChanged,
    OffsetFound,
    OffsetStatus,
    OffsetUpdated,
    Pulled,
    PullStatus,
    Refusal,
    Refused,
    Request,
    Routed,
    Subscription,
    UpdateStatus,
)
from tornpage.impl.consumer.running import ConsumeContext, Listener, RunningConsumer, monotonic_ms
from tornpage.impl.consumer.settings import BrokerSettings, ConsumeFromWhere, ConsumerSettings, MessageModel

__all__ = [
    "STRATEGIES",
    "Answer",
    "Batch",
    "Bounds",
    "BrokerSettings",
    "Call",
    "CallError",
    "ConcurrentStatus",
    "Configured",
    "Connection",
    "ConsistentHash",
    "ConsumeContext",
    "ConsumeFromWhere",
    "ConsumerBroker",
    "ConsumerMessage",
    "ConsumerSettings",
    "DirectConnection",
    "Holding",
    "HoldingState",
    "Lease",
    "Listener",
    "MachineRoom",
    "MachineRoomNearby",
    "MembersChanged",
    "MessageModel",
    "MessageQueue",
    "OffsetFound",
    "OffsetMap",
    "OffsetStatus",
    "OffsetUpdated",
    "OrderlyStatus",
    "ProcessQueue",
    "PullConsumer",
    "PullStatus",
    "Pulled",
    "PushConsumer",
    "QueueLag",
    "Refusal",
    "Refused",
    "Request",
    "Routed",
    "RunningConsumer",
    "Strategy",
    "Subscription",
    "Unconsumed",
    "UpdateStatus",
    "averagely",
    "averagely_by_circle",
    "dead_letter_topic",
    "monotonic_ms",
    "retry_topic",
]
