"""Describe one hole of RocketMQ 4.9.3, what this store does instead, and its test."""

from dataclasses import dataclass, field

from tornpage.properties.planted import PLANTED
from tornpage.properties.score.holes.search import Search

__all__ = ["Hole"]

_BUGS = {hole: bug.id for bug in PLANTED.values() for hole in bug.holes}
_REPRODUCERS = (
    "tests/properties/planted/test_smallest_cases.py::test_the_smallest_case_shows_the_bug_and_holds_without_it"
)


@dataclass(frozen=True, slots=True)
class Hole:
    """Describe a hole.

    A planted bug lists the holes that it reproduces; if none does, `reason` says why. `contracts` are the promises of
    docs/contract.md that the hole breaks. `pinned_by` is a test of its own that pins it, as a path and a name. Without
    one it is the test of the bug's reproducer. `paragraph` is the hole whose heading covers this one in the analysis of
    4.9.3, or empty for its own heading. 56 holes share 53 paragraphs.
    """

    id: str
    sentence: str
    contracts: tuple[int, ...]
    instead: str
    hunt: Search = field(default_factory=Search)
    pinned_by: str = ""
    reason: str = ""
    paragraph: str = ""

    @property
    def bug(self) -> str:
        """Return the id of the planted bug that reproduces the hole, or an empty string."""
        return _BUGS.get(self.id, "")

    @property
    def regression(self) -> str:
        """Return the test that pins the hole, or an empty string if this store cannot have it."""
        return self.pinned_by or (f"{_REPRODUCERS}[{self.bug}]" if self.bug else "")

    @property
    def heading(self) -> str:
        """Return the id of the paragraph that covers the hole."""
        return self.paragraph or self.id

    @property
    def is_hosted(self) -> bool:
        """Return whether this store can have the hole."""
        return bool(self.bug)
