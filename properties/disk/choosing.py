"""From what a case says of a power loss to a choice for every open fact, and back.

A case names the exceptions: against a disk on which nothing un-synced survived (`others` is "lost"), or against one on
which all of it did ("kept"). Both forms can say every loss; the one with fewer exceptions is the one to read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tornpage.model.operations import Choice, Others
from tornpage.properties.disk.images import Choices, Fact

__all__ = ["PowerLoss", "chosen", "exceptions", "fewest_exceptions", "fitted", "lost_facts"]


@dataclass(frozen=True, slots=True)
class PowerLoss:
    """One power loss of a run: the facts that were open, and what was chosen for them."""

    facts: tuple[Fact, ...]
    choices: Choices

    @property
    def lost(self) -> list[Fact]:
        """The facts of which the latest version did not survive whole."""
        return lost_facts(self.facts, self.choices)


def chosen(facts: Sequence[Fact], survived: Choices, others: Others) -> dict[str, Choice]:
    """Return a choice for every fact that has one other than 0; numbers that are too large count as the latest."""
    found = {fact.name: _choice(fact, survived, others) for fact in facts}
    return {name: choice for name, choice in found.items() if choice != 0}


def fitted(facts: Sequence[Fact], survived: Choices, others: Others) -> dict[str, Choice]:
    """Return the exceptions among the facts there are, in numbers they have."""
    return exceptions(facts, chosen(facts, survived, others), others)


def exceptions(facts: Sequence[Fact], choices: Choices, others: Others) -> dict[str, Choice]:
    """Return what has to be named in one form to say these choices."""
    named = {fact.name: choices.get(fact.name, 0) for fact in facts}
    usual = {fact.name: _usual(fact, others) for fact in facts}
    return {name: choice for name, choice in named.items() if choice != usual[name]}


def fewest_exceptions(facts: Sequence[Fact], choices: Choices) -> tuple[dict[str, Choice], Others]:
    """Return the form that names fewer facts, and its exceptions; with as many of both, what was lost is named."""
    kept, lost = exceptions(facts, choices, "kept"), exceptions(facts, choices, "lost")
    return (lost, "lost") if len(lost) < len(kept) else (kept, "kept")


def lost_facts(facts: Sequence[Fact], choices: Choices) -> list[Fact]:
    """Return the facts of which the latest version did not survive whole: lost, older or torn."""
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
