"""Convert between the power loss in a case and a choice for every in-flight write.

A case names exceptions. They are exceptions from a disk on which no in-flight write survived (`others` is "lost"), or
on which all of them did ("kept"). Both forms can express every power loss; cases use the one with fewer exceptions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tornpage.model.operations import Choice, Others
from tornpage.properties.disk.images import Choices, InFlightWrite

__all__ = ["PowerLoss", "chosen", "exceptions", "fewest_exceptions", "fitted", "lost_writes"]


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """One power loss of a run: the in-flight writes, and a choice for each of them."""

    writes: tuple[InFlightWrite, ...]
    choices: Choices

    @property
    def lost(self) -> list[InFlightWrite]:
        """The in-flight writes whose latest version did not survive completely."""
        return lost_writes(self.writes, self.choices)


def chosen(writes: Sequence[InFlightWrite], survived: Choices, others: Others) -> dict[str, Choice]:
    """Return the choices other than 0.

    Numbers that are too large count as the latest version.
    """
    found = {write.name: _choice(write, survived, others) for write in writes}
    return {name: choice for name, choice in found.items() if choice != 0}


def fitted(writes: Sequence[InFlightWrite], survived: Choices, others: Others) -> dict[str, Choice]:
    """Return the exceptions among existing in-flight writes, with valid numbers."""
    return exceptions(writes, chosen(writes, survived, others), others)


def exceptions(writes: Sequence[InFlightWrite], choices: Choices, others: Others) -> dict[str, Choice]:
    """Return the exceptions that express these choices in one form."""
    named = {write.name: choices.get(write.name, 0) for write in writes}
    usual = {write.name: _usual(write, others) for write in writes}
    return {name: choice for name, choice in named.items() if choice != usual[name]}


def fewest_exceptions(writes: Sequence[InFlightWrite], choices: Choices) -> tuple[dict[str, Choice], Others]:
    """Return the exceptions in the form that has fewer, and that form.

    If both have as many, lost writes are named.
    """
    kept, lost = exceptions(writes, choices, "kept"), exceptions(writes, choices, "lost")
    return (lost, "lost") if len(lost) < len(kept) else (kept, "kept")


def lost_writes(writes: Sequence[InFlightWrite], choices: Choices) -> list[InFlightWrite]:
    """Return the writes whose latest version did not survive: lost, older or torn."""
    named = exceptions(writes, choices, "kept")
    return [write for write in writes if write.name in named]


def _usual(write: InFlightWrite, others: Others) -> int:
    return 0 if others == "lost" else write.alternatives - 1


def _choice(write: InFlightWrite, survived: Choices, others: Others) -> Choice:
    choice = survived.get(write.name, _usual(write, others))
    latest = write.alternatives - 1
    if isinstance(choice, int):
        return max(0, min(choice, latest))
    first, second, mask = choice
    return min(first, latest), min(second, latest), mask
