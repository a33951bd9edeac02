"""Specify defaults and valid values of the settings of consumers (contract 8).

`DEFAULTS` has the value of each setting that is not given, by the kind of settings. `cases` lists values at the limits
and one past them, with the setting that is refused. `derived` lists values that follow from settings.

Source: `DefaultMQPushConsumer`, `ClientConfig`, `ProcessQueue`, `RebalanceLockManager`, `ConsumerManager`,
`TopicConfig`, `SubscriptionGroupConfig` and `ConsumerFilterData` of RocketMQ 4.9.3, and the texts of the settings.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

__all__ = ["DEFAULTS", "SUBSCRIBED", "Case", "Kind", "cases", "derived"]

Kind = Literal["member", "broker", "pull", "context", "topic", "group", "filter", "version"]
"""The settings of a member, of the broker's part and of a pull consumer, and what a listener may set for its batch.

The last four are entries of the broker's tables, and the version of a table.
"""

_NAMES: Mapping[Kind, Mapping[str, Any]] = {
    "member": {"consumer_group": "G", "client_id": "c"},
    "broker": {"broker_name": "b"},
    "pull": {"group": "G"},
    "context": {"queue": None},
}

DEFAULTS: Mapping[Kind, Mapping[str, Any]] = {
    "member": {
        "message_model": "CLUSTERING", "orderly": False,
        "consume_from_where": "CONSUME_FROM_LAST_OFFSET", "consume_timestamp_ms": None,
        "allocate_message_queue_strategy": "AVG", "consume_thread_max": 20,
        "pull_batch_size": 32, "pull_interval": 0, "consume_message_batch_max_size": 1,
        "pull_threshold_for_queue": 1_000, "pull_threshold_size_for_queue": 100,
        "pull_threshold_for_topic": -1, "pull_threshold_size_for_topic": -1,
        "consume_concurrently_max_span": 2_000, "consume_timeout": 15, "max_reconsume_times": -1,
        "suspend_current_queue_time_millis": 1_000, "pull_time_delay_mills_when_exception": 1_000,
        "pull_time_delay_mills_when_flow_control": 50, "pull_time_delay_mills_when_suspend": 1_000,
        "broker_suspend_max_time_millis": 15_000, "consumer_timeout_millis_when_suspend": 30_000,
        "request_timeout": 5_000, "persist_consumer_offset_interval": 5_000,
        "heartbeat_broker_interval": 30_000, "poll_name_server_interval": 30_000,
        "rebalance_wait_interval": 20_000, "rebalance_lock_interval": 20_000,
        "rebalance_lock_max_live_time": 30_000, "pull_max_idle_time": 120_000, "hand_over_timeout": 30_000,
    },
    "broker": {
        "rebalance_lock_max_live_time": 60_000, "channel_expired_timeout": 120_000,
        "auto_create_subscription_group": True, "owners_survive": True, "long_polling": True,
        "repeated_keys_max": 10_000, "default_queue_nums": 0,
    },
    "pull": {},
    "context": {"ack_index": None, "delay_level": 0, "suspend_ms": None, "auto_commit": True},
    "topic": {
        "read_queue_nums": 16, "write_queue_nums": 16, "perm": 6, "topic_filter_type": "SINGLE_TAG",
        "topic_sys_flag": 0, "order": False,
    },
    "group": {
        "consume_enable": True, "consume_from_min_enable": True, "consume_broadcast_enable": True,
        "retry_queue_nums": 1, "retry_max_times": 16, "broker_id": 0, "which_broker_when_consume_slowly": 1,
        "notify_consumer_ids_changed_enable": True,
    },
    "filter": {
        "expression": "", "expression_type": "SQL92", "born_time": 0, "dead_time": 0, "client_version": 0,
        "bloom_filter_data": {},
    },
    "version": {"counter": 0, "timestamp": 0},
}  # fmt: skip
"""The value of each setting that is not given. Choices are the names of their values."""

_ONE_OR_MORE: Mapping[Kind, tuple[str, ...]] = {
    "member": (
        "consume_thread_max", "pull_batch_size", "consume_message_batch_max_size", "pull_threshold_for_queue",
        "pull_threshold_size_for_queue", "consume_concurrently_max_span", "consume_timeout",
        "pull_time_delay_mills_when_exception", "pull_time_delay_mills_when_flow_control",
        "pull_time_delay_mills_when_suspend", "broker_suspend_max_time_millis", "request_timeout",
        "persist_consumer_offset_interval", "heartbeat_broker_interval", "poll_name_server_interval",
        "rebalance_wait_interval", "rebalance_lock_interval", "pull_max_idle_time", "hand_over_timeout",
    ),
    "broker": ("rebalance_lock_max_live_time", "channel_expired_timeout", "repeated_keys_max"),
    "pull": ("pull_timeout", "timeout"),
}  # fmt: skip
_LEAST: Mapping[Kind, Mapping[str, int]] = {
    "member": {"pull_interval": 0, "max_reconsume_times": -1},
    "broker": {"default_queue_nums": 0},
    "pull": {},
}
_MESSAGES = ("pull_batch_size", "consume_message_batch_max_size")
_MESSAGES_MAX = 1_024
_MINUS_ONE_OR_MORE = ("pull_threshold_for_topic", "pull_threshold_size_for_topic")
_UNLIMITED = (1 << 31) - 1

SUBSCRIBED = (
    ("*", "TAG", ""), ("A", "TAG", ""), ("A || B", "TAG", ""), ("a =", "TAG", ""), ("a = 'b'", "SQL92", ""),
    ("a > 5 AND b IS NULL", "SQL92", ""), ("a =", "SQL92", "expression"), ("*", "SQL", "kind"), ("*", "tag", "kind"),
    ("*", "", "kind"), ("*", "TAG", "topic"),
)  # fmt: skip
"""Expressions of subscriptions with their kind, and what each is refused for.

The topic of the last one has no name.
"""


class Case(NamedTuple):
    """Settings of a kind, and the name of the one that is refused; empty if all are valid."""

    kind: Kind
    given: Mapping[str, Any]
    refused: str = ""


def cases() -> Iterator[Case]:
    """Yield settings with one value at a limit or one past it; the others have their defaults."""
    kinds: tuple[Kind, ...] = ("member", "broker", "pull")
    for kind in kinds:
        for name in _ONE_OR_MORE[kind]:
            for number in (-1, 0, 1, 2):
                yield _case(kind, {name: number}, name if number < 1 else "")
        for name, least in _LEAST[kind].items():
            for number in (least - 1, least, least + 1):
                yield _case(kind, {name: number}, name if number < least else "")
        for name in _NAMES[kind]:
            yield _case(kind, {name: ""}, name)
    for name in _MESSAGES:
        for number in (_MESSAGES_MAX, _MESSAGES_MAX + 1):
            yield _case("member", {name: number}, name if number > _MESSAGES_MAX else "")
    for name in _MINUS_ONE_OR_MORE:
        for number in (-2, -1, 0, 1):
            yield _case("member", {name: number}, "" if number in (-1, 1) else name)
    yield from _names()
    yield from _together()


def _case(kind: Kind, given: Mapping[str, Any], refused: str) -> Case:
    return Case(kind, {**_NAMES[kind], **given}, refused)


def _names() -> Iterator[Case]:
    """Yield names with the separator of the progress file, and names of strategies."""
    yield _case("member", {"consumer_group": "a@b"}, "consumer_group")
    yield _case("member", {"client_id": "10.0.0.1@7"}, "")
    yield _case("pull", {"group": "a@b"}, "group")
    for name in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"):
        yield _case("member", {"allocate_message_queue_strategy": name}, "")
    for name in ("", "avg", "MACHINE_ROOM", "CONFIG"):
        yield _case("member", {"allocate_message_queue_strategy": name}, "allocate_message_queue_strategy")


def _together() -> Iterator[Case]:
    """Yield pairs of settings that depend on each other.

    A pull has to outlive its hold at the broker. Leases have to be renewed before they end. A begin by time needs one.
    """
    time_out, hold = "consumer_timeout_millis_when_suspend", "broker_suspend_max_time_millis"
    for held_ms, waits_ms in ((15_000, 15_000), (15_000, 15_001), (30_000, 30_000), (1, 2)):
        yield _case("member", {hold: held_ms, time_out: waits_ms}, "" if waits_ms > held_ms else time_out)
    interval, life = "rebalance_lock_interval", "rebalance_lock_max_live_time"
    for every_ms, lives_ms in ((30_000, 30_000), (29_999, 30_000), (1, 1), (1, 2)):
        yield _case("member", {interval: every_ms, life: lives_ms}, "" if every_ms < lives_ms else interval)
    by_time = {"consume_from_where": "CONSUME_FROM_TIMESTAMP"}
    yield _case("member", by_time, "consume_timestamp_ms")
    yield _case("member", {**by_time, "consume_timestamp_ms": 0}, "")
    yield _case("member", {"message_model": "BROADCASTING"}, "directory")


def derived() -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield settings of a member, and what follows from them.

    `suspend_ms` maps what a listener asks for to the pause of its queue.
    """
    for times, orderly, most in ((-1, False, 16), (-1, True, _UNLIMITED), (0, False, 0), (0, True, 0), (17, True, 17)):
        yield {**_NAMES["member"], "max_reconsume_times": times, "orderly": orderly}, {"reconsume_times_max": most}
    for model in ("CLUSTERING", "BROADCASTING"):
        yield {**_NAMES["member"], "message_model": model}, {"is_broadcasting": model == "BROADCASTING"}
    for setting, asked, pause in (
        (1_000, None, 1_000), (1_000, -1, 1_000), (1_000, 0, 10), (1_000, 9, 10), (1_000, 11, 11), (5, None, 10),
        (1_000, 30_001, 30_000), (1_000, 29_999, 29_999), (40_000, None, 30_000), (40_000, 500, 500),
    ):  # fmt: skip
        yield (
            {**_NAMES["member"], "suspend_current_queue_time_millis": setting},
            {"suspend_ms": {asked: pause}},
        )
