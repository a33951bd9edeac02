"""The settings of consumers and of the broker's part.

They have RocketMQ's names in snake case, and its defaults. Times are milliseconds, unless a name or a comment states
another unit. Source: `DefaultMQPushConsumer`, `ClientConfig`, `RebalanceService`, `ProcessQueue`,
`RebalanceLockManager`, `ConsumerManager`.
"""

from dataclasses import dataclass
from enum import Enum

from tornpage.impl.errors import BadConfig

__all__ = [
    "DEFAULT_MAX_RECONSUME_TIMES",
    "UNLIMITED",
    "BrokerSettings",
    "ConsumeFromWhere",
    "ConsumerSettings",
    "MessageModel",
]

DEFAULT_MAX_RECONSUME_TIMES = 16
"""How often a message is consumed again at most, if `max_reconsume_times` is -1 and consumption is concurrent."""
UNLIMITED = (1 << 31) - 1
"""The same for orderly consumption."""
_MESSAGES_MAX = 1_024
_SUSPEND_MS = (10, 30_000)


class MessageModel(Enum):
    """CLUSTERING: each message goes to one member of the group.

    BROADCASTING: each member gets all messages.
    """

    CLUSTERING = "CLUSTERING"
    BROADCASTING = "BROADCASTING"


class ConsumeFromWhere(Enum):
    """Where a group without progress begins in a queue."""

    CONSUME_FROM_LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    CONSUME_FROM_FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    CONSUME_FROM_TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """How one member of a consumer group works. Raises BadConfig.

    `client_id` has to be unique among the processes of all clients. Broadcasting needs one that a restarted process has
    again, since the progress is stored under it.
    """

    consumer_group: str
    client_id: str
    message_model: MessageModel = MessageModel.CLUSTERING
    orderly: bool = False
    """Whether the messages of a queue are consumed one after another (`MessageListenerOrderly`)."""
    consume_from_where: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    consume_timestamp_ms: int | None = None
    """Milliseconds since 1970, for CONSUME_FROM_TIMESTAMP."""
    allocate_message_queue_strategy: str = "AVG"
    """A name in `impl.consumer.allocation.STRATEGIES`, for a strategy without settings."""
    consume_thread_max: int = 20
    pull_batch_size: int = 32
    """Messages of one pull, at most."""
    pull_interval: int = 0
    """The pause between two pulls of a queue."""
    consume_message_batch_max_size: int = 1
    """Messages of one call of the listener, at most."""
    pull_threshold_for_queue: int = 1_000
    """Messages of one queue that a client caches, at most."""
    pull_threshold_size_for_queue: int = 100
    """Bytes of bodies of one queue that a client caches, in MiB, at most. One larger message is cached alone."""
    pull_threshold_for_topic: int = -1
    """Shared by the queues of a topic, if not -1."""
    pull_threshold_size_for_topic: int = -1
    consume_concurrently_max_span: int = 2_000
    """The greatest difference of two cached offsets of a queue, for concurrent consumption."""
    consume_timeout: int = 15
    """Minutes after which a running listener counts as overdue. An overdue run is reported, never repeated."""
    max_reconsume_times: int = -1
    """-1 means 16 for concurrent consumption and no limit for orderly consumption."""
    suspend_current_queue_time_millis: int = 1_000
    pull_time_delay_mills_when_exception: int = 1_000
    pull_time_delay_mills_when_flow_control: int = 50
    pull_time_delay_mills_when_suspend: int = 1_000
    broker_suspend_max_time_millis: int = 15_000
    """How long the broker may hold a pull."""
    consumer_timeout_millis_when_suspend: int = 30_000
    """The time-out of a pull."""
    request_timeout: int = 5_000
    """The time-out of other requests."""
    persist_consumer_offset_interval: int = 5_000
    heartbeat_broker_interval: int = 30_000
    poll_name_server_interval: int = 30_000
    """How often the routes of topics are asked for."""
    rebalance_wait_interval: int = 20_000
    rebalance_lock_interval: int = 20_000
    """How often leases are renewed."""
    rebalance_lock_max_live_time: int = 30_000
    """How long a client uses a lease after it has asked for its last renewal."""
    pull_max_idle_time: int = 120_000
    hand_over_timeout: int = 30_000
    """How long a concurrent consumer waits for the last results of a queue before it gives the queue up."""

    def __post_init__(self) -> None:
        for name in ("consumer_group", "client_id"):
            if not getattr(self, name):
                raise BadConfig(name, "", "use a name")
        if "@" in self.consumer_group:
            raise BadConfig("consumer_group", self.consumer_group, "use a name without @")
        for name in _COUNTS:
            if getattr(self, name) < 1:
                raise BadConfig(name, getattr(self, name), "use a number of at least 1")
        for name in ("pull_batch_size", "consume_message_batch_max_size"):
            if getattr(self, name) > _MESSAGES_MAX:
                raise BadConfig(name, getattr(self, name), f"use 1 to {_MESSAGES_MAX}")
        for name in ("pull_threshold_for_topic", "pull_threshold_size_for_topic"):
            if getattr(self, name) != -1 and getattr(self, name) < 1:
                raise BadConfig(name, getattr(self, name), "use -1 or a number of at least 1")
        if self.pull_interval < 0:
            raise BadConfig("pull_interval", self.pull_interval, "use 0 or more")
        if self.max_reconsume_times < -1:
            raise BadConfig("max_reconsume_times", self.max_reconsume_times, "use -1 or more")
        if self.consumer_timeout_millis_when_suspend <= self.broker_suspend_max_time_millis:
            raise BadConfig(
                "consumer_timeout_millis_when_suspend",
                self.consumer_timeout_millis_when_suspend,
                "use more than broker_suspend_max_time_millis, or held pulls time out",
            )
        if self.rebalance_lock_interval >= self.rebalance_lock_max_live_time:
            raise BadConfig(
                "rebalance_lock_interval",
                self.rebalance_lock_interval,
                "use less than rebalance_lock_max_live_time, or leases expire before they are renewed",
            )
        if self.consume_from_where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP and self.consume_timestamp_ms is None:
            raise BadConfig("consume_timestamp_ms", None, "name the time from which the group begins")

    @property
    def is_broadcasting(self) -> bool:
        """Whether each member gets all messages."""
        return self.message_model is MessageModel.BROADCASTING

    @property
    def reconsume_times_max(self) -> int:
        """How often a message is consumed again at most."""
        if self.max_reconsume_times >= 0:
            return self.max_reconsume_times
        return UNLIMITED if self.orderly else DEFAULT_MAX_RECONSUME_TIMES

    def suspend_ms(self, asked_ms: int | None) -> int:
        """Return how long an orderly queue pauses after a failure."""
        wanted = self.suspend_current_queue_time_millis if asked_ms is None or asked_ms < 0 else asked_ms
        return min(max(wanted, _SUSPEND_MS[0]), _SUSPEND_MS[1])


_COUNTS = (
    "consume_thread_max",
    "pull_batch_size",
    "consume_message_batch_max_size",
    "pull_threshold_for_queue",
    "pull_threshold_size_for_queue",
    "consume_concurrently_max_span",
    "consume_timeout",
    "pull_time_delay_mills_when_exception",
    "pull_time_delay_mills_when_flow_control",
    "pull_time_delay_mills_when_suspend",
    "broker_suspend_max_time_millis",
    "request_timeout",
    "persist_consumer_offset_interval",
    "heartbeat_broker_interval",
    "poll_name_server_interval",
    "rebalance_wait_interval",
    "rebalance_lock_interval",
    "pull_max_idle_time",
    "hand_over_timeout",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """How a broker serves consumers. Raises BadConfig.

    `owners_survive` is true if a client may own a queue longer than the broker lives. The broker then waits for the
    life of a lock after its start before it grants a queue to an orderly consumer. Clients in the process of the broker
    end with it, so that no wait is needed.
    """

    broker_name: str = "broker-a"
    rebalance_lock_max_live_time: int = 60_000
    """The life of a lease after its last renewal (`rocketmq.broker.rebalance.lockMaxLiveTime`)."""
    channel_expired_timeout: int = 120_000
    """The time after the last heartbeat from which a client counts as gone."""
    auto_create_subscription_group: bool = True
    """Whether a group without a configuration is served with the default one."""
    owners_survive: bool = True
    long_polling: bool = True
    """Whether pulls that find nothing are held."""
    repeated_keys_max: int = 10_000
    """How many keys of sent-back messages are remembered to recognise a repetition."""
    default_queue_nums: int = 0
    """Queues of a topic that has neither a configuration nor a message."""

    def __post_init__(self) -> None:
        if not self.broker_name:
            raise BadConfig("broker_name", "", "use a name")
        for name in ("rebalance_lock_max_live_time", "channel_expired_timeout", "repeated_keys_max"):
            if getattr(self, name) < 1:
                raise BadConfig(name, getattr(self, name), "use a number of at least 1")
        if self.default_queue_nums < 0:
            raise BadConfig("default_queue_nums", self.default_queue_nums, "use 0 or more")
