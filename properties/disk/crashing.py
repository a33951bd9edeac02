"""Crash a recorded disk at one point: choose what survives, and certify the image."""

from collections.abc import Mapping
from dataclasses import dataclass

from tornpage.model.operations import Choice, Others
from tornpage.properties.disk.certificate import assert_legal
from tornpage.properties.disk.choosing import chosen, fitted
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import InFlightWrite, compose, disk_state, in_flight_writes
from tornpage.properties.disk.journal import Entry, ProcessKilled
from tornpage.properties.disk.recording_files import RecordingFiles
from tornpage.properties.program.case import Disk

__all__ = ["LostPower", "in_flight_at", "killed_journal", "lose_power"]


@dataclass(frozen=True, slots=True)
class LostPower:
    """The image after a power loss, its exceptions, and the number of lost writes."""

    image: Image
    survived: Mapping[str, Choice]
    lost_writes: int


def in_flight_at(files: RecordingFiles, position: int, *, disk: Disk) -> list[InFlightWrite]:
    """Return the in-flight writes at a position of the journal."""
    return in_flight_writes(disk_state(files.base, files.journal, position, disk=disk))


def lose_power(
    files: RecordingFiles,
    position: int,
    survived: Mapping[str, Choice],
    others: Others,
    *,
    disk: Disk,
    certify: bool = True,
) -> LostPower:
    """Lose power at a position of the journal.

    Raises HarnessError if the image is not legal and is to be certified.
    """
    state = disk_state(files.base, files.journal, position, disk=disk)
    writes = in_flight_writes(state)
    choices = chosen(writes, survived, others)
    image = compose(state, choices)
    if certify:
        assert_legal(files.base, files.journal, position, choices, image, disk=disk)
    lost = sum(choices.get(each.name, 0) != each.alternatives - 1 for each in writes)
    return LostPower(image, fitted(writes, survived, others), lost)


def killed_journal(files: RecordingFiles, position: int) -> tuple[Entry, ...]:
    """Return the journal of a process that was killed at a position."""
    return (*files.journal[:position], ProcessKilled())
