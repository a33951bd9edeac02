"""One hole of RocketMQ 4.9.3: what goes wrong there, what our store does instead, and how the harness shows it."""

from dataclasses import dataclass, field

from properties.score.holes.hunt import Hunt

__all__ = ["Hole", "smallest_case"]


@dataclass(frozen=True, slots=True)
class Hole:
    """`bug` is the planted bug that is this hole in our store; where there is none, `reason` says why.

    `contracts` are the promises of docs/contract.md that the hole breaks. `regression` is the test that pins it, as a
    path and a name. `paragraph` is the hole under whose heading the analysis of 4.9.3 has this one, its own if empty:
    56 holes stand in 53 paragraphs.
    """

    id: str
    sentence: str
    contracts: tuple[int, ...]
    instead: str
    bug: str = ""
    hunt: Hunt = field(default_factory=Hunt)
    regression: str = ""
    reason: str = ""
    paragraph: str = ""

    @property
    def heading(self) -> str:
        """The id of the paragraph it stands in."""
        return self.paragraph or self.id

    @property
    def is_hosted(self) -> bool:
        """Whether our store can have it."""
        return bool(self.bug)


def smallest_case(bug: str) -> str:
    """Return the test in which the smallest case of a planted bug shows it (properties/planted/smallest)."""
    return f"tests/properties/test_smallest_cases.py::test_the_smallest_case_shows_the_bug_and_holds_without_it[{bug}]"
