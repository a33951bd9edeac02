"""The verdicts of a run, and the two exceptions that end one early.

`GuaranteeBroken` is a fault of the store: a numbered promise does not hold. `HarnessError` is a fault of this lab.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from traceback import walk_tb
from typing import TypeVar

__all__ = ["GuaranteeBroken", "HarnessError", "Verdict", "observed", "raised_by_store", "reading_store"]

_STORE = "tornpage.impl"

Result = TypeVar("Result")


class Verdict(Enum):
    """What a run established. "unknown" and "vacuous" are never green."""

    HOLDS = "holds"
    BROKEN = "broken"
    VACUOUS = "vacuous"
    UNKNOWN = "unknown"
    HARNESS = "harness"

    @property
    def exit_code(self) -> int:
        """Return the exit code of the command line."""
        return {"holds": 0, "broken": 1, "vacuous": 3, "unknown": 3, "harness": 4}[self.value]


@dataclass
class GuaranteeBroken(AssertionError):
    """The store breaks contract `contract`: a sentence, the expected and the found value."""

    contract: int
    sentence: str
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        detail = f" (expected {self.expected}; found {self.found})" if self.expected or self.found else ""
        return f"contract {self.contract}: {self.sentence}{detail}"


class HarnessError(Exception):
    """The lab itself failed.

    Examples: an illegal image, a run that does not repeat, a case that cannot run.
    """


def observed(verb: str, call: Callable[[], Result]) -> Result:
    """Call an operation of the store.

    Raises GuaranteeBroken (8) if it raises where the model expects an answer.
    """
    try:
        return call()
    except GuaranteeBroken:
        raise
    except Exception as error:
        raise GuaranteeBroken(8, f"{verb} raises {type(error).__name__}: {error}") from error


@contextmanager
def reading_store() -> Iterator[None]:
    """Run a judge that reads objects of the store.

    An exception of such an object breaks contract 8. Every other exception is a fault of the lab and passes. Raises
    GuaranteeBroken.
    """
    try:
        yield
    except (GuaranteeBroken, HarnessError):
        raise
    except Exception as error:
        if not raised_by_store(error):
            raise
        sentence = "an object of the store cannot be read"
        raise GuaranteeBroken(8, sentence, "a value", f"{type(error).__name__}: {error}") from error


def raised_by_store(error: BaseException) -> bool:
    """Return whether the store raised an exception.

    A function of the store was running, or an object of the store lacks an attribute.
    """
    if any(_is_of_store(frame.f_globals.get("__name__", "")) for frame, _ in walk_tb(error.__traceback__)):
        return True
    if not isinstance(error, AttributeError):
        return False
    kind = error.obj if isinstance(error.obj, type) else type(error.obj)
    return any(_is_of_store(base.__module__) for base in kind.__mro__)


def _is_of_store(module: str) -> bool:
    return module == _STORE or module.startswith(f"{_STORE}.")
