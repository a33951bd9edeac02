"""The verdicts of a run, and the two exceptions that end one early.

`GuaranteeBroken` is a fault of the store: a numbered promise does not hold. `HarnessError` is a fault of this lab.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

__all__ = ["GuaranteeBroken", "HarnessError", "Verdict", "observed"]

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
