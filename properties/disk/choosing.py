"""Convert between the power loss in a case and a choice for every in-flight write.

A case names exceptions. They are exceptions from a disk on which no in-flight write survived (`others` is "lost"), or
on which all of them did ("kept"). Both forms can express every power loss; cases use the one with fewer exceptions.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tornpage.model.operations import Choice, Others
from tornpage.properties.disk.images import Choices, Fact

__all__ = ["PowerLoss", "chosen", "exceptions", "fewest_exceptions", "fitted", "lost_facts"]


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """One power loss of a run: the in-flight writes, and a choice for each of them."""

    facts: tuple[Fact, ...]
    choices: Choices

    @property
    def lost(self) -> list[Fact]:
        """The in-flight writes whose latest version did not survive completely."""
        return lost_facts(self.facts, self.choices)


def chosen(facts: Sequence[Fact], survived: Choices, others: Others) -> dict[str, Choice]:
    """Return the choices other than 0.

    Numbers that are too large count as the latest version.
    """
    found = {fact.name: _choice(fact, survived, others) for fact in facts}
    return {name: choice for name, choice in found.items() if choice != 0}


def fitted(facts: Sequence[Fact], survived: Choices, others: Others) -> dict[str, Choice]:
    """Return the exceptions among existing in-flight writes, with valid numbers."""
    return exceptions(facts, chosen(facts, survived, others), others)


def exceptions(facts: Sequence[Fact], choices: Choices, others: Others) -> dict[str, Choice]:
    """Return the exceptions that express these choices in one form."""
    named = {fact.name: choices.get(fact.name, 0) for fact in facts}
    usual = {fact.name: _usual(fact, others) for fact in facts}
    return {name: choice for name, choice in named.items() if choice != usual[name]}


def fewest_exceptions(facts: Sequence[Fact], choices: Choices) -> tuple[dict[str, Choice], Others]:
    """Return the exceptions in the form that has fewer, and that form.

    If both have as many, lost writes are named.
    """
    kept, lost = exceptions(facts, choices, "kept"), exceptions(facts, choices, "lost")
    return (lost, "lost") if len(lost) < len(kept) else (kept, "kept")


def lost_facts(facts: Sequence[Fact], choices: Choices) -> list[Fact]:
    """Return the writes whose latest version did not survive: lost, older or torn."""
    named = exceptions(facts, choices, "kept")
    return [fact for fact in facts if fact.name in named]


def _usual(fact: Fact, others: Others) -> int:
    return 0 if others == "lost" else fact.alternatives - 1


def _choice(fact: Fact, survived: Choices, others: Others) -> Choice:
    choice = survived.get(fact.name, _usual(fact, others))
    latest = fact.alternatives - 1
    if isinstance(choice, int):
        return max(0, min(choice, latest))
    first, second, mask = choice
    return min(first, latest), min(second, latest), mask
