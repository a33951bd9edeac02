"""Run every crash inside a save of a state file, and a second one after it.

Each position is combined with each choice of facts that reached the disk. Bounds: one file of two sectors and its
backup; every open name, size and page on its own; pages torn between their sectors; the disks `posix-strict`, `journal`
and `kill`.
"""

from collections.abc import Iterator
from itertools import product

import pytest

from tornpage.impl.groups.config_file import ConfigFile
from tornpage.model.operations import Choice
from tornpage.properties.disk.compare import CompareTracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import InFlightWrite, compose, disk_state, in_flight_writes
from tornpage.properties.disk.recording_files import RecordingFiles
from tornpage.properties.planted import PLANTED
from tornpage.properties.program.case import Disk

DISKS: tuple[Disk, ...] = ("posix-strict", "journal", "ext4", "btrfs", "kill")
PATH = "/config/consumerOffset.json"
PADDING = "x" * 600
BACKUP_ALONE = {f"{PATH}.bak": b'{"v":1}'}


def document(version: int) -> dict[str, object]:
    return {"v": version, "padding": PADDING}


def version_of(read: object) -> int:
    match read:
        case {"v": int(version)}:
            return version
    raise ValueError("another shape")


def disk_with(image: Image) -> RecordingFiles:
    return RecordingFiles(image, tracker=CompareTracker())


def loaded(image: Image, kind: type[ConfigFile] = ConfigFile) -> int | None:
    return kind(disk_with(image), PATH).load(version_of)


def saved(version: int, image: Image, kind: type[ConfigFile] = ConfigFile) -> RecordingFiles:
    """Open the content of an image and save a version; the disk records all operations."""
    files = disk_with(image)
    file = kind(files, PATH)
    file.load(version_of)
    file.make_durable()
    file.save(document(version))
    return files


def choices(fact: InFlightWrite) -> list[Choice]:
    torn: list[Choice] = [(0, fact.alternatives - 1, mask) for mask in (1, 2)] if fact.kind == "page" else []
    return [*range(fact.alternatives), *torn]


def images_of(files: RecordingFiles, disk: Disk) -> Iterator[tuple[int, Image]]:
    """Yield each image that a crash may leave, once.

    With it comes the last journal position that leaves it.
    """
    last: dict[tuple[tuple[str, bytes], ...], tuple[int, Image]] = {}
    for position in range(len(files.journal) + 1):
        state = disk_state(files.base, files.journal, position, disk=disk)
        facts = in_flight_writes(state)
        for survived in product(*(choices(fact) for fact in facts)):
            image = compose(state, dict(zip((fact.name for fact in facts), survived, strict=True)))
            last[tuple(sorted(image.files.items()))] = position, image
    yield from last.values()


def durable_after(files: RecordingFiles, disk: Disk) -> Image:
    return compose(disk_state(files.base, files.journal, len(files.journal), disk=disk), {})


def start(**files: bytes) -> Image:
    return Image(frozenset({"/", "/config"}), files)


def with_two_versions() -> Image:
    first = saved(1, start())
    return durable_after(saved(2, durable_after(first, "posix-strict")), "posix-strict")


def broken_by(kind: type[ConfigFile], image: Image, disk: Disk) -> list[tuple[int, int | None]]:
    """Return position and loaded version of each wrong crash.

    A crash is wrong if it leaves neither the old nor the new version, or, after the save has returned, not the new one.
    """
    old, files = loaded(image, kind), saved(3, image, kind)
    end = len(files.journal)
    found = ((position, loaded(left, kind)) for position, left in images_of(files, disk))
    return [
        (position, version) for position, version in found if version not in ((3,) if position == end else (old, 3))
    ]


@pytest.mark.parametrize("disk", DISKS)
@pytest.mark.parametrize(
    "image",
    [start(), with_two_versions(), Image(frozenset({"/", "/config"}), BACKUP_ALONE),
     Image(frozenset({"/", "/config"}), {**BACKUP_ALONE, PATH: b""}),
     Image(frozenset({"/", "/config"}), {**BACKUP_ALONE, PATH: b"\0" * 700, f"{PATH}.tmp": b"{"})],
    ids=["nothing", "two versions", "backup alone", "empty beside its backup", "torn beside its backup"],
)  # fmt: skip
def test_a_crash_inside_a_save_leaves_the_old_version_or_the_new_one(image: Image, disk: Disk) -> None:
    assert broken_by(ConfigFile, image, disk) == []


@pytest.mark.parametrize("disk", DISKS)
def test_so_does_a_crash_inside_the_first_save_after_one(disk: Disk) -> None:
    files = saved(3, with_two_versions())
    images = [image for _, image in images_of(files, disk)]
    assert len(images) > len(DISKS)
    assert {loaded(image) for image in images} == {2, 3}
    for image in images:
        assert broken_by(ConfigFile, image, disk) == []


@pytest.mark.parametrize("disk", DISKS)
def test_what_was_loaded_survives_the_next_power_loss(disk: Disk) -> None:
    files = saved(3, with_two_versions())
    for position in range(len(files.journal) + 1):
        seen = compose(disk_state(files.base, files.journal, position, disk="kill"), {})
        again = RecordingFiles(files.base, tracker=CompareTracker(), journal=tuple(files.journal[:position]))
        file = ConfigFile(again, PATH)
        found = file.load(version_of)
        file.make_durable()
        assert found == loaded(seen)
        assert {loaded(image) for at, image in images_of(again, disk) if at == len(again.journal)} == {found}


@pytest.mark.parametrize(
    ("bug", "image"),
    [("RMQ-B63", with_two_versions()), ("progress-not-synced", with_two_versions()),
     ("progress-name-not-synced", with_two_versions()),
     ("backup-overwritten", Image(frozenset({"/", "/config"}), {**BACKUP_ALONE, PATH: b""}))],
)  # fmt: skip
def test_files_that_are_replaced_otherwise_are_caught(bug: str, image: Image) -> None:
    kind = PLANTED[bug].parts.of(ConfigFile)
    assert isinstance(kind, type)
    assert broken_by(kind, image, "posix-strict")
