"""One planted bug as a record: what is wrong, which parts make it so, where it comes from, and how it shows."""

from dataclasses import dataclass, replace

from tornpage.impl.parts import Parts
from tornpage.properties.planted.programs import Program
from tornpage.properties.program.case import Case

__all__ = ["DURABILITY", "Origin", "PlantedBug"]

DURABILITY = "durability"
"""The group of mistakes between a write and the disk. A tester that misses one of them proves nothing about it."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A defect of RocketMQ, read from its history up to September 2025 and from the sources of 4.9.3.

    `fixed_in` is a release, or says that none has it fixed; `in_493` says whether 4.9.3 has it.
    """

    id: str
    title: str
    fixed_in: str
    in_493: str


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """A mistake that the tester has to notice.

    `contract` is the number of the guarantee that it is about. `parts` replaces the parts of the store that make it.
    `kind` is the kind of mistake of a bug in the group of durability. `holes` are the defects of 4.9.3 that it is
    (properties/score/holes). `machine` is the machine made for it, empty where no machine sees it soon.

    `program` is the minimal reproducer: its last operation breaks a guarantee, and the store without the bug keeps all
    of them. That is `contract` unless `breaks_first` names another one, which is judged earlier. There is no program
    where two threads have to meet. Where no single thread can show the bug at all it `needs_threads`.
    """

    id: str
    sentence: str
    contract: int
    parts: Parts
    kind: str = ""
    origin: Origin | None = None
    holes: tuple[str, ...] = ()
    machine: str = ""
    needs_threads: bool = False
    program: Program | None = None
    breaks_first: int = 0

    @property
    def group(self) -> str:
        """The named set of bugs that it belongs to, or nothing."""
        return DURABILITY if self.kind else ""

    @property
    def reproducer(self) -> Case | None:
        """The minimal reproducer as a case with the bug in its settings."""
        if self.program is None:
            return None
        settings, operations = self.program
        return Case(replace(settings, bug=self.id), operations)

    @property
    def shown_contract(self) -> int:
        """The number of the guarantee that the minimal reproducer breaks."""
        return self.breaks_first or self.contract
