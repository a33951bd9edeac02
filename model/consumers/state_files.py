"""Specify the state files below `config/` and the tables in them (contracts 13 and 17).

1. A save replaces NAME by the new document. NAME.bak gets the document that was loaded or saved before, if any.
2. A load takes NAME. If NAME is missing, empty or invalid, it takes NAME.bak. Each of the two cases has its finding.
3. Each change of topics and groups is saved by its method. It counts up the version of the table, with its time.
4. Committed offsets are limited to the end of their queue. They are corrected to it at open.

A document is any value; None is no file, and `TORN` an empty or invalid one.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

__all__ = ["TORN", "Offsets", "StateFile"]

TORN = "torn"
Document = object
Queue = tuple[str, int]
Range = Callable[[str, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class StateFile:
    """A file, its backup, and the document that its owner loaded or saved last."""

    main: Document = None
    backup: Document = None
    last: Document = None

    def loaded(self) -> tuple["StateFile", Document, str]:
        """Load the file: its document, and the finding; empty without one."""
        for document, finding in ((self.main, ""), (self.backup, "config_file_from_backup")):
            if document is not None and document != TORN:
                return replace(self, last=document), document, finding
        is_lost = TORN in (self.main, self.backup)
        return replace(self, last=None), None, "config_file_unreadable" if is_lost else ""

    def saved(self, document: Document) -> "StateFile":
        """Replace the file."""
        return StateFile(document, self.backup if self.last is None else self.last, document)


@dataclass(frozen=True, slots=True)
class Offsets:
    """The committed offsets by topic and group, and by queue id."""

    of: Mapping[tuple[str, str], Mapping[int, int]] = field(default_factory=dict)

    def _with(self, key: tuple[str, str], offsets: Mapping[int, int]) -> "Offsets":
        return Offsets({**self.of, key: offsets})

    def commit(self, key: tuple[str, str], queue_id: int, offset: int, range_of: Range) -> tuple["Offsets", int]:
        """Commit an offset; what counts."""
        counts = min(offset, range_of(key[0], queue_id)[1])
        return self._with(key, {**self.of.get(key, {}), queue_id: counts}), counts

    def corrected(self, range_of: Range) -> "Offsets":
        """Limit all offsets to the ends of their queues."""
        return Offsets(
            {
                key: {queue_id: min(at, range_of(key[0], queue_id)[1]) for queue_id, at in offsets.items()}
                for key, offsets in self.of.items()
            }
        )

    def cloned(self, source: tuple[str, str], target: tuple[str, str]) -> "Offsets":
        """Copy the offsets of a group, if it has any."""
        return self._with(target, self.of[source]) if source in self.of else self

    def without(self, keys: Collection[tuple[str, str]]) -> "Offsets":
        """Remove groups in topics."""
        return Offsets({key: offsets for key, offsets in self.of.items() if key not in keys})

    def restarted(self, topic: str, *, is_memory: bool) -> "Offsets":
        """Return the offsets after the numbers of a topic restart.

        They are forgotten in memory, and 0 on the disk before that.
        """
        if is_memory:
            return self.without([key for key in self.of if key[0] == topic])
        return Offsets({key: dict.fromkeys(at, 0) if key[0] == topic else at for key, at in self.of.items()})

    def least(self, topic: str, without: Collection[str], range_of: Range) -> dict[int, int]:
        """Return the lowest readable offset of each queue, over all groups but some."""
        found: dict[int, int] = {}
        for (name, group), offsets in self.of.items():
            for queue_id, at in offsets.items() if name == topic and group not in without else ():
                if at >= range_of(topic, queue_id)[0]:
                    found[queue_id] = min(at, found.get(queue_id, at))
        return found
