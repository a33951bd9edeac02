"""Compare one answer of a function of the store with the model (contract 8)."""

from collections.abc import Callable
from typing import Any

from tornpage.impl.errors import BadFilter
from tornpage.properties.contract import GuaranteeBroken, HarnessError

__all__ = ["REFUSED", "is_answered", "is_value"]

REFUSED = "refused"
"""The answer of a function that raises ValueError or BadFilter."""


def is_answered(what: str, expected: object, call: Callable[..., object], *arguments: Any, **named: Any) -> None:
    """Compare one answer; `what` names the call.

    Raises GuaranteeBroken if the model has another answer.
    """
    is_value(what, expected, _answer_of(call, *arguments, **named))


def is_value(what: str, expected: object, found: object) -> None:
    """Raise GuaranteeBroken if a value differs from that of the model, or has another type."""
    if found != expected or type(found) is not type(expected):
        raise GuaranteeBroken(8, f"{what} has another answer than the model's", repr(expected), repr(found))


def _answer_of(call: Callable[..., object], *arguments: Any, **named: Any) -> object:
    """Return the answer of a function.

    It is `REFUSED` if the function refuses the call, and the text of any other exception.
    """
    try:
        return call(*arguments, **named)
    except (GuaranteeBroken, HarnessError):
        raise
    except (ValueError, BadFilter):
        return REFUSED
    except Exception as error:  # another exception is a wrong answer
        return f"{type(error).__name__}: {error}"
