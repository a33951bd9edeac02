"""Test that certificates name the right entries and barriers.

The legality checker accepts them after random runs.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tornpage.impl.io.files import Mapping as FileMapping
from tornpage.impl.io.files import OpenFile
from tornpage.model.operations import Choice
from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.certificate import (
    Certificate,
    FileClaim,
    OperationClaim,
    PageClaim,
    assert_legal,
    certify,
)
from tornpage.properties.disk.dirty import CompareTracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.failing_disk import FailingDisk
from tornpage.properties.disk.images import JOURNAL_WRITE, Choices, compose, disk_state, in_flight_writes
from tornpage.properties.disk.journal import (
    DirectoryMade,
    DirectorySynced,
    Entry,
    FileCreated,
    FileRenamed,
    FileSynced,
    PagesDropped,
    PageWritten,
    ProcessKilled,
    Resized,
)
from tornpage.properties.disk.legality import objections
from tornpage.properties.disk.recording_files import EMPTY_DISK
from tornpage.properties.disk.sampling import draw
from tornpage.properties.program.case import Disk

PAGE = 4096
DISKS: list[Disk] = ["posix-strict", "journal", "ext4", "xfs", "btrfs", "kill"]
BASE = Image(frozenset({"/", "/s"}), {"/s/b": b"b" * 10, "/s/a": b"a" * PAGE})
JOURNAL: list[Entry] = [
    PageWritten(0, 0, b"1" * PAGE),
    FileSynced(0, succeeded=True),
    PageWritten(0, 0, b"2" * PAGE),
    FileSynced(0, succeeded=False),
    PageWritten(0, 0, b"3" * PAGE),
    Resized(0, 2 * PAGE),
    PageWritten(0, 1, b"4" * PAGE),
    FileCreated(2, "/s/c"),
    FileRenamed(2, "/s/c", "/s/d"),
    DirectoryMade("/s/e"),
    # the crash
    FileSynced(0, succeeded=False),
    DirectorySynced("/"),
    FileSynced(0, succeeded=True),
    DirectorySynced("/s"),
]
CRASH = 10


def certified(choices: Choices, disk: Disk = "posix-strict", position: int = CRASH) -> Certificate:
    return certify(BASE, JOURNAL, position, choices, disk=disk)


def first_file(choices: Choices, disk: Disk = "posix-strict") -> FileClaim:
    claim = certified(choices, disk).files[0]
    assert claim.path == "/s/a"
    return claim


def test_without_choices_everything_rests_on_the_last_barrier() -> None:
    assert certified({}) == Certificate(
        position=CRASH,
        disk="posix-strict",
        files=(
            FileClaim("/s/a", 0, "base", PAGE, "base", 1, 12, (PageClaim(0, (0,)),)),
            FileClaim("/s/b", 1, "base", 10, "base", None, None),
        ),
        operations=(),
    )


@pytest.mark.parametrize(
    ("choice", "versions", "mask"),
    [
        (0, (0,), None),
        (1, (2,), None),
        (2, (4,), None),
        (3, (0,), None),  # there is no third
        ((0, 2, 5), (0, 4), 5),
        ((2, 1, 254), (4, 2), 254),
        ((1, 1, 5), (2,), None),
        ((1, 2, 0), (2,), None),
        ((1, 2, 255), (4,), None),
        ((1, 2, 256 + 3), (2, 4), 3),
        ((1, 3, 5), (0,), None),
    ],
)
def test_a_page_claim_names_the_versions_of_its_choice(
    choice: Choice, versions: tuple[int, ...], mask: int | None
) -> None:
    assert first_file({"page /s/a 0": choice}).pages == (PageClaim(0, versions, mask),)


def test_a_size_claim_names_its_entry_and_brings_the_pages_inside() -> None:
    claim = first_file({"size /s/a": 1, "page /s/a 1": 1})
    assert (claim.size_bytes, claim.sized_by) == (2 * PAGE, 5)
    assert claim.pages == (PageClaim(0, (0,)), PageClaim(1, (6,)))
    assert first_file({"size /s/a": 1}).pages[1] == PageClaim(1, ("base",))
    assert [page.page for page in first_file({"page /s/a 1": 1}).pages] == [0]  # with its size lost, page 1 is outside


def test_files_are_named_by_the_operation_that_gave_the_name() -> None:
    choices = {"create /s/c": 1, "rename /s/c /s/d": 1}
    named = {file.path: (file.inode, file.named_by) for file in certified(choices).files}
    assert named == {"/s/a": (0, "base"), "/s/b": (1, "base"), "/s/d": (2, 8)}
    assert [claim.entry for claim in certified(choices).operations] == [7, 8]
    named = {file.path: (file.inode, file.named_by) for file in certified({"create /s/c": 1}).files}
    assert named["/s/c"] == (2, 7)


def test_an_operation_claim_knows_the_barriers_of_its_directory() -> None:
    (claim,) = certified({"mkdir /s/e": 1}).operations
    assert claim == OperationClaim(9, "/s", durable_since=None, barrier_before=None, barrier_after=13)
    durable = certified({}, position=len(JOURNAL)).operations
    assert durable == tuple(OperationClaim(n, "/s", 13, 13, None) for n in (7, 8, 9))


def test_in_the_journal_profile_a_file_sync_is_a_barrier_for_names() -> None:
    journal = [*JOURNAL[:CRASH], FileSynced(2, succeeded=True)]
    (claim, *rest) = certify(BASE, journal, len(journal), {JOURNAL_WRITE: 1}, disk="journal").operations
    assert claim == OperationClaim(7, "/s", durable_since=10, barrier_before=None, barrier_after=None)
    assert [(claim.entry, claim.durable_since) for claim in rest] == [(8, 10), (9, None)]
    assert certify(BASE, journal, len(journal), {}, disk="posix-strict").operations == ()


def test_a_kill_rests_on_the_latest_of_everything() -> None:
    certificate = certified({"page /s/a 0": 1}, "kill")
    claim = certificate.files[0]
    assert (claim.sized_by, claim.pages) == (5, (PageClaim(0, (4,)), PageClaim(1, (6,))))
    assert [operation.entry for operation in certificate.operations] == [7, 8, 9]


def test_a_killed_process_in_the_journal_changes_nothing() -> None:
    journal = [*JOURNAL[:CRASH], ProcessKilled()]
    assert replace(certify(BASE, journal, 11, {}, disk="journal"), position=CRASH) == certify(
        BASE, journal[:CRASH], CRASH, {}, disk="journal"
    )


def test_the_document_is_json_and_holds_everything() -> None:
    document = certified({"size /s/a": 1, "page /s/a 0": (0, 2, 5), "mkdir /s/e": 1}).document()
    assert json.loads(json.dumps(document)) == document
    assert document["position"] == CRASH
    assert document["disk"] == "posix-strict"
    assert document["files"][0] == {
        "path": "/s/a",
        "inode": 0,
        "named_by": "base",
        "size_bytes": 8192,
        "sized_by": 5,
        "barrier_before": 1,
        "barrier_after": 12,
        "pages": [
            {"page": 0, "versions": [0, 4], "mask": 5, "dropped_by": None},
            {"page": 1, "versions": ["base"], "mask": None, "dropped_by": None},
        ],
    }
    assert document["operations"] == [
        {
            "entry": 9,
            "directory": "/s",
            "durable_since": None,
            "barrier_before": None,
            "barrier_after": 13,
            "keeps_source": False,
        }
    ]
    assert document["sentences"] == [
        "directory operation of entry 9 in /s: survived, never synced before the crash, next sync at entry 13",
        "/s/a: 8192 bytes, set at entry 5, after the last sync at entry 1, next sync at entry 12",
        "page 0 of /s/a: torn: sectors 0, 2 of the version written at entry 4, the others of the version written at "
        "entry 0, after the last sync at entry 1, next sync at entry 12",
        "page 1 of /s/a: initial content, last synced at entry 1, next sync at entry 12",
        "/s/b: 10 bytes, initial size, never synced before the crash",
    ]


@pytest.mark.parametrize(
    ("choices", "disk", "position", "sentence"),
    [
        ({"page /s/a 0": 2}, "posix-strict", CRASH,
         "page 0 of /s/a: version written at entry 4, after the last sync at entry 1, next sync at entry 12"),
        ({}, "posix-strict", CRASH,
         "page 0 of /s/a: version written at entry 0, last synced at entry 1, next sync at entry 12"),
        ({"page /s/a 0": 1}, "posix-strict", 1,
         "page 0 of /s/a: version written at entry 0, never synced before the crash, next sync at entry 1"),
        ({}, "kill", CRASH,
         "page 0 of /s/a: latest version written at entry 4; the page cache survives a process kill"),
        ({}, "posix-strict", len(JOURNAL), "directory operation of entry 8: durable since the sync at entry 13"),
        ({}, "posix-strict", len(JOURNAL), "/s/a: 8192 bytes, set at entry 5, last synced at entry 12, "
         "no sync after that"),
    ],
)  # fmt: skip
def test_a_person_can_read_what_it_rests_on(choices: Choices, disk: Disk, position: int, sentence: str) -> None:
    assert sentence in certified(choices, disk, position).sentences()


def test_a_page_that_counted_as_clean_is_not_called_covered() -> None:
    """Entry 4 syncs the dirty page 0.

    The page is clean from then on and may hold any of its former contents.
    """
    journal: list[Entry] = [
        PageWritten(0, 0, b"1" * PAGE),
        FileSynced(0, succeeded=False),
        PagesDropped(0),
        Resized(0, 2 * PAGE),
        FileSynced(0, succeeded=True),
    ]
    for choice, version in ((0, "initial content"), (1, "version written at entry 0")):
        sentences = certify(BASE, journal, 5, {"page /s/a 0": choice}, disk="posix-strict").sentences()
        subject = "page 0 of /s/a, counted as clean since the failed sync at entry 2"
        assert f"{subject}: {version}, skipped by the sync at entry 4, no sync after that" in sentences
    later = [*journal, PageWritten(0, 0, b"2" * PAGE)]
    sentences = certify(BASE, later, 6, {"page /s/a 0": 2}, disk="posix-strict").sentences()
    assert f"{subject}: version written at entry 5, after the last sync at entry 4, no sync after that" in sentences


def test_assert_legal_is_silent_about_a_legal_image_and_names_what_is_wrong_with_another() -> None:
    choices: Choices = {"page /s/a 0": 2}
    image = compose(disk_state(BASE, JOURNAL, CRASH, disk="journal"), choices)
    assert_legal(BASE, JOURNAL, CRASH, choices, image, disk="journal")
    with pytest.raises(HarnessError, match=r"position 10 \(disk journal\): /s/a: page 0 does not hold what"):
        assert_legal(BASE, JOURNAL, CRASH, {"page /s/a 0": 1}, image, disk="journal")
    scrambled = Image(image.directories, {f"/s/{n}": b"" for n in range(9)})
    with pytest.raises(HarnessError, match="and 6 more"):
        assert_legal(BASE, JOURNAL, CRASH, choices, scrambled, disk="journal")


# ---- random histories ------------------------------------------------------------------------------------------------

DIRECTORIES = ["/", "/d", "/d/e"]
NAMES = ["f", "g", "h"]
SIZES_BYTES = [0, 1, 100, PAGE, PAGE + 1, 3 * PAGE]
OFFSETS = [0, 50, 500, PAGE - 1, PAGE, 2 * PAGE + 700]
LENGTHS = [1, 16, 512, 2000, PAGE, 2 * PAGE]
FULL = Image(frozenset({"/", "/d"}), {"/g": b"g" * 5000, "/d/f": b"f" * 100, "/d/h": b""})
Step = tuple[str, int, int, int]


def joined(directory: str, name: str) -> str:
    return f"{directory.rstrip('/')}/{name}"


class History:
    """Executes steps on a recorded disk; impossible steps are skipped."""

    def __init__(self, base: Image) -> None:
        self.files = FailingDisk(base, tracker=CompareTracker())
        self.handles: list[tuple[OpenFile, FileMapping | None]] = []
        self.writes = 0

    def run(self, step: Step) -> None:
        verb, a, b, c = step
        path = joined(DIRECTORIES[a % 3], NAMES[b % 3])
        exists = path in self.files.paths()
        room = self.files.stat(DIRECTORIES[a % 3]) is not None
        if verb == "create" and room and not exists:
            self.handles.append((self.files.create(path), None))
        elif verb == "open" and exists:
            self.handles.append((self.files.open(path, writable=True), None))
        elif verb == "rename" and exists and b % 3 != c % 3:
            self.files.rename(path, joined(DIRECTORIES[a % 3], NAMES[c % 3]))
        elif verb == "unlink" and exists:
            self.files.unlink(path)
        elif verb == "make_directory" and not room:
            self.files.make_directory("/d" if self.files.stat("/d") is None else "/d/e")
        elif verb == "sync_directory" and room:
            self.files.sync_directory(DIRECTORIES[a % 3])
        elif verb == "mark":
            self.files.mark("step")
        elif verb == "kill" and c == 0:
            self.files = FailingDisk(
                self.files.base, tracker=CompareTracker(), journal=(*self.files.journal, ProcessKilled())
            )
            self.handles = []
        elif self.handles:
            self.run_on_handle(verb, a % len(self.handles), b, c)

    def run_on_handle(self, verb: str, index: int, b: int, c: int) -> None:
        file, mapping = self.handles[index]
        if verb == "map" and mapping is None:
            self.handles[index] = (file, self.files.map(file))
        elif verb == "unmap" and mapping is not None:
            self.files.unmap(mapping)
            self.handles[index] = (file, None)
        elif verb == "sync":
            self.files.sync(file)
        elif verb == "sync_drops":
            self.files.drop_pages(file)
        elif verb == "sync_fails":
            self.files.failing_syncs = 1
            with pytest.raises(OSError, match="Input/output"):
                self.files.sync(file)
        elif verb == "store" and mapping is not None:
            start = min(OFFSETS[b % len(OFFSETS)], len(mapping.view))
            end = min(start + LENGTHS[c % len(LENGTHS)], len(mapping.view))
            mapping.view[start:end] = self.data(end - start)
        elif verb in ("allocate", "pwrite"):
            try:
                if verb == "allocate":
                    self.files.allocate(file, SIZES_BYTES[b % len(SIZES_BYTES)])
                else:
                    self.files.pwrite(file, self.data(LENGTHS[c % len(LENGTHS)]), OFFSETS[b % len(OFFSETS)])
            except OSError as error:
                if "mapped" not in str(error):
                    raise

    def data(self, size_bytes: int) -> bytes:
        """Return bytes that no other write has, or zeros in every fifth call."""
        self.writes += 1
        return bytes(size_bytes) if self.writes % 5 == 0 else random.Random(self.writes).randbytes(size_bytes)


NAME_VERBS = ["create", "create", "open", "rename", "unlink", "make_directory", "sync_directory", "mark", "kill"]
CONTENT_VERBS = ["map", "unmap", *["sync"] * 2, "sync_fails", "sync_drops", *["store"] * 3, "allocate", "pwrite"]
VERBS = [*NAME_VERBS, *CONTENT_VERBS * 3]
numbers = st.integers(0, 5)
steps: st.SearchStrategy[list[Step]] = st.lists(
    st.tuples(st.sampled_from(VERBS), numbers, numbers, numbers), min_size=3, max_size=60
)


def random_steps(rng: random.Random) -> list[Step]:
    return [(rng.choice(VERBS), rng.randrange(6), rng.randrange(6), rng.randrange(6)) for _ in range(60)]


def recorded(base: Image, script: Sequence[Step]) -> list[Entry]:
    history = History(base)
    for step in script:
        history.run(step)
    history.files.mark("end")
    return history.files.journal


@given(
    base=st.sampled_from([EMPTY_DISK, FULL]),
    script=steps,
    disk=st.sampled_from(DISKS),
    where=st.floats(0, 1),
    seed=st.integers(0, 1 << 16),
)
def test_checker_accepts_every_image_that_is_composed(
    base: Image, script: list[Step], disk: Disk, where: float, seed: int
) -> None:
    journal = recorded(base, script)
    position = round(where * len(journal))
    rng = random.Random(seed)
    state = disk_state(base, journal, position, disk=disk)
    for _ in range(4):
        choices: Choices = {**draw(in_flight_writes(state), rng), "page /never 0": 1, "size /never": 2}
        if rng.random() < 0.3:  # too large numbers count as 0
            large = (fact for fact in in_flight_writes(state) if fact.kind in ("page", "size") and rng.random() < 0.3)
            choices = {**choices, **{fact.name: fact.alternatives + rng.randrange(2) for fact in large}}
        certificate = certify(base, journal, position, choices, disk=disk)
        assert objections(base, journal, compose(state, choices), certificate) == []
        event(f"disk {disk}, torn: {any(page.mask for file in certificate.files for page in file.pages)}")


def shapes_of(base: Image, journal: Sequence[Entry], certificate: Certificate) -> set[str]:
    """Return the special features of a legal image."""
    shapes = {"durable operation" for claim in certificate.operations if claim.durable_since is not None}
    shapes |= {"lucky operation" for claim in certificate.operations if claim.durable_since is None}
    paths = {operation.path for operation in journal[: certificate.position] if isinstance(operation, FileCreated)}
    shapes |= {"lost name" for path in paths if path not in {file.path for file in certificate.files}}
    for file in certificate.files:
        barrier = -1 if file.barrier_before is None else file.barrier_before
        sizes = [
            e.size_bytes for e in journal[: certificate.position] if isinstance(e, Resized) if e.inode == file.inode
        ]
        shapes |= {"lost size"} if sizes and file.size_bytes < sizes[-1] else set()
        shapes |= {"renamed"} if file.named_by != "base" and isinstance(journal[file.named_by], FileRenamed) else set()
        for page in file.pages:
            old = [version == "base" or version < barrier for version in page.versions]
            shapes |= {"page passed by"} if page.dropped_by is not None else set()
            shapes.add("torn page" if page.mask else "durable page" if all(old) else "lucky page")
    for claim in certificate.operations:
        if claim.durable_since is not None and isinstance(journal[claim.durable_since], FileSynced):
            shapes.add("name durable by file sync")
    if any(isinstance(entry, ProcessKilled) for entry in journal[: certificate.position]):
        shapes.add("process killed before")
    return shapes
