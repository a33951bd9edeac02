"""Hash everything on which the rest of a run of a consumer group depends."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import is_dataclass
from enum import Enum
from operator import itemgetter
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import mmh3

from tornpage.impl.parts import Parts
from tornpage.impl.store import MessageStore
from tornpage.properties.consumers.host import BrokerHost
from tornpage.properties.consumers.trial import GroupTrial

__all__ = ["whole_state"]

_OPAQUE = (Parts, MessageStore, BrokerHost, GroupTrial, FunctionType, MethodType, BuiltinFunctionType, type)
"""Values that have no state of their own, or whose state is hashed in another way."""
_PLAIN = (str, bytes, int, float, bool, type(None))


def whole_state(trial: GroupTrial) -> bytes:
    """Return a 128-bit hash of the state of a run.

    The store counts with its files and with the times at which its services are due.
    """
    host = trial.host
    durable = sorted((each.name, each.alternatives) for each in trial.in_flight(0))
    services = [(each.is_woken, each.is_stopped, each.due_ms) for each in host.services]
    names: dict[int, int] = {}
    state = (
        trial.now_ms,
        host.files.seen(("/",)),
        durable,
        services,
        host.queues,
        _plain(trial.group, names),
        _plain(trial.members, names),
        _plain(trial.connections, names),
        _plain(host.broker, names) if host.is_up else None,
        trial.holds,
        trial.slow,
        sorted(Counter(trial.failing).items()),
    )
    return mmh3.hash_bytes(repr(state).encode())


def _plain(value: Any, names: dict[int, int]) -> Any:
    """Return a value as nested tuples of plain values.

    A changeable object that occurs again is its number.
    """
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, _OPAQUE):
        return type(value).__name__
    if isinstance(value, tuple):
        return tuple(_plain(each, names) for each in value)
    if isinstance(value, set | frozenset):
        return ("set", *sorted(repr(_plain(each, names)) for each in value))
    if not _is_frozen(value):
        if id(value) in names:
            return f"object {names[id(value)]}"
        names[id(value)] = len(names)
    if isinstance(value, Mapping):
        items = sorted(((repr(_plain(key, names)), each) for key, each in value.items()), key=itemgetter(0))
        return ("map", *((key, _plain(each, names)) for key, each in items))
    if isinstance(value, list | deque):
        return ("list", *(_plain(each, names) for each in value))
    return type(value).__name__, *((name, _plain(each, names)) for name, each in _fields(value))


def _is_frozen(value: Any) -> bool:
    return is_dataclass(value) and value.__dataclass_params__.frozen  # type: ignore[union-attr]


def _fields(value: Any) -> list[tuple[str, Any]]:
    names = dict.fromkeys(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        names |= dict.fromkeys((slots,) if isinstance(slots, str) else slots)
    return sorted((name, getattr(value, name)) for name in names if hasattr(value, name) and not name.startswith("__"))
