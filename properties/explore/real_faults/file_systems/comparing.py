"""Compare what a file system left with what the crash model permits."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tornpage.model.operations import Choice
from tornpage.properties.disk.certificate import certify
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.images import compose
from tornpage.properties.disk.journal import Entry, FileRenamed, FileUnlinked
from tornpage.properties.disk.legality import objections
from tornpage.properties.disk.rules import DISK_RULES, DiskRules
from tornpage.properties.explore.real_faults.file_systems.explain import explained
from tornpage.properties.explore.real_faults.file_systems.file_system import Kind
from tornpage.properties.explore.real_faults.file_systems.history import START, History, history_of
from tornpage.properties.explore.real_faults.file_systems.seen import NEVER_SEEN, legal_rules, rules_seen
from tornpage.properties.explore.real_faults.file_systems.workload import Operation
from tornpage.properties.program.case import Disk

__all__ = ["PLANTED", "Comparison", "Illegal"]

HALF_A_RENAME = "half of a rename that replaces a file"
"""What btrfs was seen to leave and the crash model has not. A rename replaces a file, and a sync of another file
follows. The replaced name is gone and the new one is lost; or the file has its new name, and the replaced file is still
there."""

KEPT_MIN = 5

PLANTED: Mapping[Kind, DiskRules] = {
    "ext4": DiskRules("directory", is_ordered=True, cuts_whole=True),
    "xfs": DiskRules("before", is_ordered=True, cuts_whole=True, data_syncs_rename=True, tears=False),
    "btrfs": DiskRules("before", is_ordered=True, cuts_whole=True, data_syncs_rename=True, tears=False),
}
"""A wrong rule for each file system, which the comparison has to find.

`ext4` forgets that the sync of a new file commits its name, `xfs` tears no page, and `btrfs` commits all earlier names.
"""


@dataclass(frozen=True, slots=True)
class Illegal:
    """A tree that the crash model does not permit.

    `mark` is the last one of the recording before the power loss.
    """

    seed: int
    mark: int
    reason: str
    operations: tuple[Operation, ...]
    found: Image

    def sentence(self) -> str:
        """Return what was found after which operation."""
        number = self.mark // 2
        when = "before the first operation" if self.mark < 0 else f"operation {number} ({self._told(number)})"
        return f"workload {self.seed}, power loss at {when}: {self.reason}"

    def _told(self, number: int) -> str:
        operation = self.operations[number]
        return " ".join(filter(None, (operation.kind, operation.path, operation.target)))

    def document(self) -> dict[str, Any]:
        """Return the workload up to the power loss, and the names and sizes that were found."""
        return {
            "seed": self.seed,
            "mark": self.mark,
            "reason": self.reason,
            "operations": [operation.document() for operation in self.operations[: max(0, self.mark // 2 + 1)]],
            "directories": sorted(self.found.directories),
            "files": {path: len(content) for path, content in sorted(self.found.files.items())},
        }


@dataclass
class Comparison:
    """What was seen on a file system, by the rules of a disk or of planted `rules`."""

    kind: Kind
    disk: Disk
    rules: DiskRules | None = None
    states: int = 0
    illegal: list[Illegal] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    departures: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    distinct: set[int] = field(default_factory=set)

    @property
    def never_seen(self) -> list[str]:
        """Return the permitted rules that no tree has shown."""
        return [rule for rule in legal_rules(self.rules or DISK_RULES[self.disk]) if not self.seen[rule]]

    @property
    def forgets_a_sync(self) -> bool:
        """Whether synced names that may be lost by the rules were kept each time."""
        return any(
            rule.endswith(("after a sync of the file", "after a sync of a resized file"))
            and self.seen[rule.replace(" lost ", " kept ")] >= KEPT_MIN
            for rule in self.never_seen
        )

    @property
    def too_weak(self) -> list[str]:
        """Return the rules that were never seen and are not known for it."""
        return [rule for rule in self.never_seen if rule not in NEVER_SEEN[self.kind]]

    def add(self, seed: int, operations: Sequence[Operation], mark: int, found: Image | str) -> None:
        """Compare one tree, or note why it could not be read."""
        self.states += 1
        if isinstance(found, str):
            self.unreadable.append(f"workload {seed}, mark {mark}: {found}")
            return
        history = history_of(operations)
        self.distinct.add(hash((found.directories, tuple(sorted(found.files.items())))))
        reason = ""
        for position in history.positions(mark):
            state = self._state(history, position)
            choices, reason = explained(state, found)
            if not reason:
                self._holds(history, position, state, choices, found)
                return
        if self.kind == "btrfs":
            for position in history.positions(mark):
                state = self._state(history, position)
                removed, replaced = _removed(state), _replaced(history.journal[:position])
                kept = Image(found.directories, {p: c for p, c in found.files.items() if p not in replaced})
                if not explained(state, found, missing=removed)[1] or not explained(state, kept, missing=replaced)[1]:
                    self.departures[HALF_A_RENAME] += 1
                    return
        self.illegal.append(Illegal(seed, mark, reason, tuple(operations), found))

    def _state(self, history: History, position: int) -> DiskState:
        state = DiskState(START, disk=self.disk, rules=self.rules)
        state.apply_all(history.journal[:position])
        return state

    def _holds(
        self, history: History, position: int, state: DiskState, choices: Mapping[str, Choice], found: Image
    ) -> None:
        """Count the rules, and have the legality checker confirm the choices."""
        self.seen.update(rules_seen(state, history.journal[:position], choices))
        if self.rules is None:
            image = compose(state, choices)
            certificate = certify(START, history.journal, position, choices, disk=self.disk)
            self.refused += objections(START, history.journal, image, certificate)
            if image != found:
                self.refused.append("the composed image is not the tree that was found")


def _removed(state: DiskState) -> frozenset[str]:
    """Return the names that pending operations remove or replace."""
    names = set[str]()
    for operation in state.pending:
        if isinstance(operation, FileRenamed):
            names |= {operation.source, operation.target}
        elif isinstance(operation, FileUnlinked):
            names.add(operation.path)
    return frozenset(names)


def _replaced(journal: Sequence[Entry]) -> frozenset[str]:
    """Return the targets of the renames in a journal."""
    return frozenset(entry.target for entry in journal if isinstance(entry, FileRenamed))
