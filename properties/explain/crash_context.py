"""The context of a crash: the recorded disk, what survived, and the certificate."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tornpage.model.operations import Choice, Crash
from tornpage.properties.disk.certificate import Certificate, certify
from tornpage.properties.disk.choosing import chosen
from tornpage.properties.disk.disk import DiskState, Image
from tornpage.properties.disk.images import InFlightWrite, compose, disk_state, in_flight_writes
from tornpage.properties.disk.journal import Entry
from tornpage.properties.program.case import Settings

__all__ = ["CrashContext"]


@dataclass(frozen=True)
class CrashContext:
    """Operation `number` of a run is the crash; the rest was recorded before it.

    `spans` are the operations since the last crash or open. Everything else is computed on demand, so that a context
    costs no more than a copy of the journal.
    """

    number: int
    crash: Crash
    settings: Settings
    base: Image
    journal: tuple[Entry, ...]
    events: tuple[int, ...]
    spans: Sequence[Any]

    @property
    def span(self) -> Any:
        """The operation during which the crash happened, or after whose answer it happened."""
        return self.spans[-1]

    @property
    def back(self) -> int:
        """Events between the crash and the answer of the last operation; 0 is at rest."""
        return min(self.crash.back, int(self.span.last - self.span.first))

    @property
    def position(self) -> int:
        """The length of the journal at the crash."""
        return self.events[self.span.last - self.back] if self.back else len(self.journal)

    @cached_property
    def state(self) -> DiskState:
        """The disk at the crash. After a process kill everything written is there."""
        disk = "kill" if self.crash.kill else self.settings.disk
        return disk_state(self.base, self.journal, self.position, disk=disk)

    @cached_property
    def writes(self) -> tuple[InFlightWrite, ...]:
        """The in-flight writes at the crash."""
        return tuple(in_flight_writes(self.state))

    @cached_property
    def choices(self) -> dict[str, Choice]:
        """A choice for each in-flight write that is not as at its last sync."""
        return chosen(self.writes, self.crash.survived, self.crash.others)

    @cached_property
    def image(self) -> Image:
        """The disk that recovery finds."""
        return compose(self.state, self.choices)

    @cached_property
    def certificate(self) -> Certificate:
        """The journal entries and barriers behind each file, size and page of the image."""
        return certify(self.base, self.journal, self.position, self.choices, disk=self.state.disk)
