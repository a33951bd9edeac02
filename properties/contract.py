"""Three verdicts, and the two ways a run can end early.

`GuaranteeBroken` is the store's fault: a numbered promise does not hold. `HarnessError` is ours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

__all__ = ["GuaranteeBroken", "HarnessError", "Verdict", "observed"]

Result = TypeVar("Result")


class Verdict(Enum):
    """What a run established; "unknown" and "vacuous" are never green."""

    HOLDS = "holds"
    BROKEN = "broken"
    VACUOUS = "vacuous"
    UNKNOWN = "unknown"
    HARNESS = "harness"

    @property
    def exit_code(self) -> int:
        """Exit code of the command line."""
        return {"holds": 0, "broken": 1, "vacuous": 3, "unknown": 3, "harness": 4}[self.value]


@dataclass
class GuaranteeBroken(AssertionError):
    """Contract number `contract` does not hold: one sentence, and what was expected against what was found."""

    contract: int
    sentence: str
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        detail = f" (expected {self.expected}; found {self.found})" if self.expected or self.found else ""
        return f"contract {self.contract}: {self.sentence}{detail}"


class HarnessError(Exception):
    """Our own tooling failed: an illegal image, a run that does not repeat, a case that cannot be carried out."""


def observed(verb: str, call: Callable[[], Result]) -> Result:
    """Run a verb of the store: no exception may escape for what the model calls an answer."""
    try:
        return call()
    except GuaranteeBroken:
        raise
    except Exception as error:
        raise GuaranteeBroken(8, f"{verb} raises {type(error).__name__}: {error}") from error
