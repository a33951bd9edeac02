"""The configuration of topics, groups and filters, with RocketMQ's fields and defaults.

Source: `TopicConfig`, `SubscriptionGroupConfig`, `ConsumerFilterData`, `DataVersion`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

__all__ = ["ConsumerFilterData", "DataVersion", "SubscriptionGroupConfig", "TopicConfig", "entry_from", "fields_of"]

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class DataVersion:
    """The number of changes of a table and the time of the last one (milliseconds).

    Slaves compare it.
    """

    counter: int = 0
    timestamp: int = 0


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """Queues and permissions of a topic; `perm` is 4 for reads plus 2 for writes."""

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = 6
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False


@dataclass(frozen=True, slots=True)
class SubscriptionGroupConfig:
    """The permissions and limits of a consumer group."""

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True


@dataclass(frozen=True, slots=True)
class ConsumerFilterData:
    """The filter of a group in a topic, and its bits in the bit maps of the queues.

    `born_time` and `dead_time` are milliseconds since 1970; `dead_time` is 0 while the filter is in use.
    """

    consumer_group: str
    topic: str
    expression: str = ""
    expression_type: str = "SQL92"
    born_time: int = 0
    dead_time: int = 0
    client_version: int = 0
    bloom_filter_data: Mapping[str, Any] = field(default_factory=dict)


def fields_of(entry: Any) -> dict[str, Any]:
    """Return the fields of an entry under RocketMQ's names, in RocketMQ's order."""
    return dict(sorted((_camel(each.name), getattr(entry, each.name)) for each in fields(entry)))


def entry_from(kind: type[Entry], document: object) -> Entry:
    """Return an entry from the fields that `fields_of` or RocketMQ wrote, ignoring others.

    Raises ValueError.
    """
    match document:
        case dict():
            names = {_camel(each.name): each for each in fields(kind)}  # type: ignore[arg-type]
            known = {names[name].name: value for name, value in document.items() if name in names}
        case _:
            raise ValueError(f"not a {kind.__name__}")
    try:
        entry = kind(**known)
    except TypeError as error:
        raise ValueError(f"not a {kind.__name__}: {error}") from error
    for each in fields(kind):  # type: ignore[arg-type]
        if not isinstance(getattr(entry, each.name), _TYPES[str(getattr(each.type, "__name__", each.type))]):
            raise ValueError(f"{each.name} of a {kind.__name__} has the wrong type")
    return entry


_TYPES: dict[str, type] = {"str": str, "int": int, "bool": bool, "Mapping": Mapping}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
