"""One hole of RocketMQ 4.9.3: what goes wrong there, what our store does instead, and how the harness shows it."""

from dataclasses import dataclass, field

from tornpage.properties.planted import PLANTED
from tornpage.properties.score.holes.hunt import Hunt

__all__ = ["Hole"]

_BUGS = {hole: bug.id for bug in PLANTED.values() for hole in bug.holes}
_REPRODUCERS = (
    "tests/properties/planted/test_smallest_cases.py::test_the_smallest_case_shows_the_bug_and_holds_without_it"
)


@dataclass(frozen=True, slots=True)
class Hole:
    """A planted bug names the holes that it is; where none does, `reason` says why our store cannot have this one.

    `contracts` are the promises of docs/contract.md that the hole breaks. `pinned_by` is a test of its own that pins
    it, as a path and a name; without one it is that of the bug's reproducer. `paragraph` is the hole under whose
    heading the analysis of 4.9.3 has this one, its own if empty: 56 holes stand in 53 paragraphs.
    """

    id: str
    sentence: str
    contracts: tuple[int, ...]
    instead: str
    hunt: Hunt = field(default_factory=Hunt)
    pinned_by: str = ""
    reason: str = ""
    paragraph: str = ""

    @property
    def bug(self) -> str:
        """The id of the planted bug that is this hole, empty if there is none."""
        return _BUGS.get(self.id, "")

    @property
    def regression(self) -> str:
        """The test that pins it, empty where our store cannot have it."""
        return self.pinned_by or (f"{_REPRODUCERS}[{self.bug}]" if self.bug else "")

    @property
    def heading(self) -> str:
        """The id of the paragraph it stands in."""
        return self.paragraph or self.id

    @property
    def is_hosted(self) -> bool:
        """Whether our store can have it."""
        return bool(self.bug)
