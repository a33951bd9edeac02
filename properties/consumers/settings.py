"""Compare defaults and checks of the settings of consumers with the model (contract 8)."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import Enum
from functools import partial
from itertools import islice
from typing import Any

from tornpage.impl.consumer.pull_consumer import PullConsumer
from tornpage.impl.consumer.push_consumer import PushConsumer
from tornpage.impl.consumer.queues import MessageQueue
from tornpage.impl.consumer.running import ConsumeContext
from tornpage.impl.consumer.settings import BrokerSettings, ConsumeFromWhere, ConsumerSettings, MessageModel
from tornpage.impl.errors import BadConfig
from tornpage.impl.groups.broker_configs import ConsumerFilterData, DataVersion, SubscriptionGroupConfig, TopicConfig
from tornpage.impl.parts import Parts
from tornpage.model.consumers.settings import DEFAULTS, Kind, cases, derived
from tornpage.properties.contract import GuaranteeBroken, observed

__all__ = ["PARTS", "consumer_settings_are_checked"]

PARTS = 4
_NAMES = ("consumer_group", "client_id", "broker_name", "queue", "topic_name", "group_name", "topic")
"""The settings without a default, or with a name for one."""
_CHOICES: Mapping[str, type[Enum]] = {"message_model": MessageModel, "consume_from_where": ConsumeFromWhere}


def consumer_settings_are_checked(part: int, parts: Parts) -> None:
    """Contract 8: settings have the stated defaults, and only invalid values are refused.

    The error names the setting. A part is a fourth of the cases; each part has all defaults.
    """
    for case in islice(cases(), part % PARTS, None, PARTS):
        expected = f"refused for {case.refused}" if case.refused else "accepted"
        found = _answer(partial(_made, case.kind, case.given, parts))
        if found != expected:
            raise GuaranteeBroken(
                8, f"settings of a {case.kind} are not checked rightly: {case.given}", expected, found
            )
    for given, follows in derived():
        made = _settings("member", given)
        for name, expected_value in follows.items():
            value = getattr(made, name)
            if isinstance(expected_value, dict):
                value = {asked: observed(name, partial(value, asked)) for asked in expected_value}
            _is(f"{name} of {given}", expected_value, value)
    _defaults_are_right()


def _defaults_are_right() -> None:
    kinds: tuple[tuple[Kind, Any], ...] = (
        ("member", _settings("member", {"consumer_group": "G", "client_id": "c"})),
        ("broker", _settings("broker", {"broker_name": "b"})),
        ("context", ConsumeContext(MessageQueue("T", "b", 0))),
        ("topic", TopicConfig("T")),
        ("group", SubscriptionGroupConfig("G")),
        ("filter", ConsumerFilterData("G", "T")),
        ("version", DataVersion()),
    )
    for kind, made in kinds:
        expected = dict(DEFAULTS[kind])
        found = {each.name: getattr(made, each.name) for each in fields(made) if each.name not in _NAMES}
        plain = {name: value.name if isinstance(value, Enum) else value for name, value in found.items()}
        _is(f"the defaults of a {kind}", expected, plain)


def _settings(kind: Kind, given: Mapping[str, Any]) -> Any:
    chosen: dict[str, Any] = {
        name: _CHOICES[name][value] if name in _CHOICES else value for name, value in given.items()
    }
    return ConsumerSettings(**chosen) if kind == "member" else BrokerSettings(**chosen)


def _made(kind: Kind, given: Mapping[str, Any], parts: Parts) -> object:
    if kind == "pull":
        return PullConsumer(connections={}, **given)
    settings = _settings(kind, given)
    return settings if kind == "broker" else PushConsumer(settings, {}, parts=parts)


def _answer(make: Callable[[], object]) -> str:
    try:
        make()
    except BadConfig as refused:
        return f"refused for {refused.name}"
    except Exception as error:  # another error is a wrong answer
        return repr(error)
    return "accepted"


def _is(what: str, expected: object, found: object) -> None:
    if found != expected:
        raise GuaranteeBroken(8, f"{what} are not those that are stated", str(expected), str(found))
