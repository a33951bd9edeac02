"""Compare the checks of a configuration with the model (contract 8)."""

from itertools import islice
from typing import Any

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.errors import BadConfig
from tornpage.model.broker.settings import cases
from tornpage.properties.contract import GuaranteeBroken

__all__ = ["settings_are_checked"]

_PARTS = 4


def settings_are_checked(part: int) -> None:
    """Contract 8: a configuration is refused for an invalid setting, and for no other.

    The error names the setting.
    """
    for name, value, is_valid in islice(cases(), part % _PARTS, None, _PARTS):
        found = _answer(name, value)
        expected = "accepted" if is_valid else f"refused for {name}"
        if found != expected:
            raise GuaranteeBroken(8, f"the setting {name}={value!r} is not checked rightly", expected, found)


def _answer(name: str, value: object) -> str:
    given: dict[str, Any] = {name: value}
    try:
        MessageStoreConfig(**given)
    except BadConfig as refused:
        return f"refused for {refused.name}"
    except Exception as error:  # another error is a wrong answer
        return repr(error)
    return "accepted"
