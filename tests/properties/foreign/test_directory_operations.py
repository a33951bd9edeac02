"""Test power losses of stores that rename, remove and link directories and files.

Files without a name and sparse files belong to it.

Symptoms: `no power loss can be made here` in the middle of a run (a store that removes a directory), and runs with
kills alone of an etcd-like log (its directory is renamed), a maildir (hard links) and a store with a 1 GiB sparse file.
"""

import itertools
import json
import os
import random
import shutil
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from tornpage.model.operations import Choice, Close, Crash, Open, Operation, Put
from tornpage.properties.campaign.replay import replay
from tornpage.properties.contract import Verdict
from tornpage.properties.disk.certificate import assert_legal, certify
from tornpage.properties.disk.dirty import choose_tracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import compose, disk_state, in_flight_writes
from tornpage.properties.disk.journal import DirectoryMade, DirectoryRenamed, DirectorySynced, Entry, FileCreated
from tornpage.properties.disk.legality import objections
from tornpage.properties.disk.sampling import draw
from tornpage.properties.disk.sparse import LARGE_BYTES, SparseContent
from tornpage.properties.explore.foreign.campaign import TargetPlan, run_target_campaign
from tornpage.properties.foreign.tracing import why_untraceable
from tornpage.properties.foreign.trial import TargetTrial
from tornpage.properties.foreign.watching import WatchedDirectory, write_directory
from tornpage.properties.program.case import Case, Disk, Settings

watched = pytest.mark.skipif(bool(why_untraceable()), reason=why_untraceable() or "it can")
ROOT = frozenset({"/"})
GIB = 1 << 30

# ---- the rules -------------------------------------------------------------------------------------------------------


def place(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def images(watched: WatchedDirectory, disk: Disk) -> Iterator[Image]:
    """Yield the image of each choice; all of them are legal."""
    position = len(watched.journal)
    state = disk_state(watched.base, watched.journal, position, disk=disk)
    writes = in_flight_writes(state)
    for numbers in itertools.product(*(range(write.alternatives) for write in writes)):
        choices: dict[str, Choice] = dict(zip((write.name for write in writes), numbers, strict=True))
        image = compose(state, choices)
        assert_legal(watched.base, watched.journal, position, choices, image, disk=disk)
        yield image


def trees(watched: WatchedDirectory, disk: Disk) -> set[str]:
    """Return the names that each crash may leave, directories with a slash at the end."""
    return {
        " ".join(sorted([*image.files, *(f"{path}/" for path in image.directories - ROOT)]))
        for image in images(watched, disk)
    }


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A directory that holds the watched one, whose name is `disk`."""
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


def begin(top: Path, *paths: str) -> WatchedDirectory:
    """Watch a directory with durable directories and empty files.

    Directories have a slash at the end.
    """
    base = Image(
        ROOT | {path.rstrip("/") for path in paths if path.endswith("/")},
        {path: b"" for path in paths if not path.endswith("/")},
    )
    write_directory(base, top)
    return WatchedDirectory(top, base)


@pytest.mark.parametrize(
    ("disk", "expected"),
    [
        ("posix-strict", {"", "/new/", "/new/ /new/0", "/tmp/", "/tmp/ /tmp/0"}),
        ("journal", {"", "/tmp/", "/tmp/ /tmp/0", "/new/ /new/0"}),
        ("kill", {"/new/ /new/0"}),
    ],
)
def test_renamed_directory_keeps_or_loses_its_files(top: Path, disk: Disk, expected: set[str]) -> None:
    watched = begin(top)
    (top / "tmp").mkdir()
    watched.look()
    (top / "tmp" / "0").touch()
    watched.look()
    (top / "tmp").rename(top / "new")
    watched.look()
    assert [type(entry) for entry in watched.journal] == [DirectoryMade, FileCreated, DirectoryRenamed]
    assert trees(watched, disk) == expected


@pytest.mark.parametrize(
    ("disk", "expected"),
    [("posix-strict", {"", "/new/ /new/0", "/tmp/ /tmp/0"}), ("journal", {"/new/ /new/0"})],
)
def test_sync_of_a_renamed_directory_covers_files_created_before_the_rename(
    top: Path, disk: Disk, expected: set[str]
) -> None:
    watched = begin(top)
    (top / "tmp").mkdir()
    watched.look()
    (top / "tmp" / "0").touch()
    watched.look()
    (top / "tmp").rename(top / "new")
    watched.synced(place(top / "new"))
    assert trees(watched, disk) == expected


def test_file_created_after_a_lost_rename_is_in_the_directory_of_the_old_name(top: Path) -> None:
    watched = begin(top, "/tmp/")
    (top / "tmp").rename(top / "new")
    watched.look()
    (top / "new" / "1").touch()
    watched.synced(place(top / "new"))
    assert trees(watched, "posix-strict") == {"/new/ /new/1", "/tmp/ /tmp/1"}


def test_checker_objects_to_a_file_that_a_lost_rename_leaves_in_the_new_directory(top: Path) -> None:
    watched = begin(top, "/tmp/", "/tmp/0")
    (top / "tmp").rename(top / "new")
    watched.look()
    certificate = certify(watched.base, watched.journal, 1, {}, disk="posix-strict")
    moved = Image(ROOT | {"/new"}, {"/new/0": b""})
    found = objections(watched.base, watched.journal, moved, certificate)
    assert "the directory /tmp is missing, but a surviving name leads to it" in found
    assert "the file /new/0 is there, but no surviving name leads to it" in found


@pytest.mark.parametrize(
    ("disk", "expected"),
    [
        ("posix-strict", {"/d/ /d/f", "/d/", ""}),
        ("journal", {"/d/ /d/f", "/d/", ""}),
    ],
)
def test_removed_directory_takes_a_file_whose_removal_is_lost_with_it(
    top: Path, disk: Disk, expected: set[str]
) -> None:
    watched = begin(top, "/d/", "/d/f")
    (top / "d" / "f").unlink()
    watched.look()
    (top / "d").rmdir()
    watched.look()
    assert trees(watched, disk) == expected
    watched.synced(place(top))
    assert trees(watched, disk) == {""}


def test_directory_made_again_does_not_hold_the_files_of_the_removed_one(top: Path) -> None:
    watched = begin(top, "/d/", "/d/f")
    (top / "d" / "f").unlink()
    watched.look()
    (top / "d").rmdir()
    watched.look()
    (top / "d").mkdir()
    watched.synced(place(top))
    assert trees(watched, "posix-strict") == {"/d/"}


@pytest.mark.parametrize(
    ("disk", "expected"),
    [
        ("posix-strict", {"/new/ /tmp/ /tmp/f", "/new/ /new/f /tmp/ /tmp/f", "/new/ /new/f /tmp/", "/new/ /tmp/"}),
        ("journal", {"/new/ /tmp/ /tmp/f", "/new/ /new/f /tmp/ /tmp/f", "/new/ /new/f /tmp/"}),
    ],
)
def test_link_and_unlink_of_a_maildir_survive_as_the_disk_orders_them(
    top: Path, disk: Disk, expected: set[str]
) -> None:
    watched = begin(top, "/tmp/", "/new/", "/tmp/f")
    os.link(top / "tmp" / "f", top / "new" / "f")
    watched.look()
    (top / "tmp" / "f").unlink()
    watched.look()
    assert trees(watched, disk) == expected


@pytest.mark.parametrize(("synced", "left"), [("a", set()), ("b", {"/a/ /a/f /b/ /b/f"})])
def test_rename_between_directories_is_committed_by_either_sync_and_at_both_names_before_that_of_the_old_one(
    top: Path, synced: str, left: set[str]
) -> None:
    watched = begin(top, "/a/", "/b/", "/a/f")
    (top / "a" / "f").rename(top / "b" / "f")
    watched.look()
    assert trees(watched, "posix-strict") == {"/a/ /a/f /b/", "/a/ /b/ /b/f", "/a/ /a/f /b/ /b/f"}
    watched.synced(place(top / synced))
    assert trees(watched, "posix-strict") == {"/a/ /b/ /b/f"} | left


def test_links_are_one_file_after_a_kill(top: Path) -> None:
    watched = begin(top, "/f")
    os.link(top / "f", top / "g")
    (top / "g").write_bytes(b"x")
    watched.look()
    watched.proves_itself()
    assert {tuple(image.files.values()) for image in images(watched, "kill")} == {(b"x", b"x")}


def test_two_renames_between_two_looks_are_told_in_their_order(top: Path) -> None:
    watched = begin(top, "/a", "/b")
    (top / "b").rename(top / "c")
    (top / "a").rename(top / "b")
    watched.look()
    watched.proves_itself()
    assert watched.unsupported == ""
    assert trees(watched, "journal") == {"/a /b", "/a /c", "/b /c"}


def random_step(top: Path, rng: random.Random) -> None:
    """Change a name, a directory or a file of a real directory at random, if that is possible."""
    directories = [top, *(path for path in sorted(top.rglob("*")) if path.is_dir())]
    files = [path for path in sorted(top.rglob("*")) if path.is_file()]
    new = rng.choice(directories) / rng.choice("abcd")
    steps: list[Callable[[], object]] = [new.mkdir, new.touch]
    if files:
        file = rng.choice(files)
        steps += [
            lambda: file.rename(new),
            lambda: os.link(file, new),
            file.unlink,
            lambda: file.write_bytes(rng.randbytes(rng.randrange(9000))),
        ]
    if len(directories) > 1:
        directory = rng.choice(directories[1:])
        steps += [lambda: directory.rename(new), directory.rmdir]
    try:
        rng.choice(steps)()
    except OSError:
        return


@pytest.mark.slow
@pytest.mark.parametrize("disk", ["posix-strict", "journal", "kill"])
@pytest.mark.parametrize("seed", range(6))
def test_random_images_are_legal_and_a_whole_journal_shows_the_directory(top: Path, seed: int, disk: Disk) -> None:
    rng, watched = random.Random(seed), begin(top, "/a/", "/a/b/", "/a/c", "/d")
    for _ in range(60):
        random_step(top, rng)
        watched.look()
        if rng.random() < 0.3:
            known = [top, *top.rglob("*")]
            watched.synced(place(rng.choice(sorted(known))))
    watched.proves_itself()
    assert watched.unsupported == ""
    for _ in range(25):
        position = rng.randrange(len(watched.journal) + 1)
        state = disk_state(watched.base, watched.journal, position, disk=disk)
        choices = draw(in_flight_writes(state), rng)
        image = compose(state, choices)
        assert_legal(watched.base, watched.journal, position, choices, image, disk=disk)
    everything = {write.name: write.alternatives - 1 for write in in_flight_writes(whole(watched, disk))}
    image = compose(whole(watched, disk), everything)
    assert set(image.files) == {f"/{path.relative_to(top)}" for path in top.rglob("*") if path.is_file()}
    assert set(image.directories) - ROOT == {f"/{path.relative_to(top)}" for path in top.rglob("*") if path.is_dir()}


def whole(watched: WatchedDirectory, disk: Disk):  # type: ignore[no-untyped-def]
    return disk_state(watched.base, watched.journal, len(watched.journal), disk=disk)


# ---- large files -----------------------------------------------------------------------------------------------------


def test_sparse_file_of_a_gibibyte_is_recorded_by_its_pages(top: Path) -> None:
    watched = begin(top)
    file = os.open(top / "f", os.O_RDWR | os.O_CREAT)
    os.ftruncate(file, GIB)
    os.pwrite(file, b"end", GIB - 3)
    watched.synced(place(top / "f"))
    os.pwrite(file, b"middle", GIB // 2)
    watched.look()
    os.close(file)
    watched.proves_itself()
    assert watched.unsupported == ""
    found = [image.files["/f"] for image in images(watched, "journal")]
    assert {(len(content), content[GIB - 3 : GIB], content[GIB // 2 : GIB // 2 + 6]) for content in found} == {
        (GIB, b"end", bytes(6)),
        (GIB, b"end", b"middle"),
    }
    again = top.parent / "again"
    again.mkdir()
    write_directory(Image(ROOT, {"/f": found[1]}), again)
    assert (again / "f").stat().st_blocks * 512 <= 4 * 4096
    assert WatchedDirectory(again, Image(ROOT, {"/f": found[1]})).base.files["/f"] == found[1]


def test_punched_hole_and_cut_of_a_large_file_are_noticed(top: Path) -> None:
    content = bytes(LARGE_BYTES) + b"x" * 8192
    watched = begin(top)
    (top / "f").write_bytes(content)
    watched.synced(place(top / "f"))
    with open(top / "f", "r+b") as file:
        file.seek(LARGE_BYTES)
        file.write(bytes(4096))
        file.truncate(LARGE_BYTES + 5000)
    watched.look()
    watched.proves_itself()
    (image,) = images(watched, "kill")
    assert image.files["/f"] == bytes(LARGE_BYTES + 4096) + b"x" * 904


@pytest.mark.parametrize("size_bytes", [0, 5, 4096, 4097, LARGE_BYTES + 1])
def test_sparse_content_is_sliced_as_bytes_are(size_bytes: int) -> None:
    content = random.Random(size_bytes).randbytes(size_bytes)
    pages = {start // 4096: content[start : start + 4096].ljust(4096, b"\0") for start in range(0, size_bytes, 4096)}
    sparse = SparseContent(size_bytes, pages)
    assert sparse == content
    for start, end in [(0, 10), (4000, 4200), (4096, 8192), (size_bytes - 3, size_bytes), (5, 5), (0, size_bytes)]:
        assert sparse[start:end] == content[start:end]


# ---- stores ----------------------------------------------------------------------------------------------------------


class Records:
    """One file for each message, which a subclass writes. Messages are found by number."""

    promises: ClassVar[dict[str, object]] = {"durable": "put", "offsets": False}

    def __init__(self, directory: str) -> None:
        self.top = Path(directory)
        self.bodies: list[tuple[str, int, bytes]] = []
        self.prepare()
        for number in itertools.count():
            path = self.path(number)
            if not path.exists():
                break
            topic, queue, body = json.loads(path.read_text())
            self.bodies.append((topic, queue, bytes.fromhex(body)))

    def prepare(self) -> None: ...

    def path(self, number: int) -> Path:
        return self.top / str(number)

    def keep(self, number: int, text: bytes) -> None:
        raise NotImplementedError

    def put(self, topic: str, queue: int, body: bytes, keys: Sequence[str]) -> tuple[int, int]:
        number = len(self.bodies)
        self.keep(number, json.dumps([topic, queue, body.hex()]).encode())
        self.bodies.append((topic, queue, body))
        return 0, sum(each[:2] == (topic, queue) for each in self.bodies) - 1

    def read(self, topic: str, queue: int, number: int) -> bytes | None:
        found = [body for there, of, body in self.bodies if (there, of) == (topic, queue)]
        return found[number] if number < len(found) else None

    def flush(self) -> None: ...

    def close(self) -> None: ...


def write_synced(path: Path, text: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(file, text)
    os.fsync(file)
    os.close(file)


def sync(directory: Path) -> None:
    file = os.open(directory, os.O_RDONLY)
    os.fsync(file)
    os.close(file)


class Maildir(Records):
    """Links each message from `tmp` into `new`."""

    def prepare(self) -> None:
        for name in ("tmp", "new"):
            (self.top / name).mkdir(exist_ok=True)
        sync(self.top)

    def path(self, number: int) -> Path:
        return self.top / "new" / str(number)

    def keep(self, number: int, text: bytes) -> None:
        write_synced(self.top / "tmp" / str(number), text)
        self.path(number).unlink(missing_ok=True)
        os.link(self.top / "tmp" / str(number), self.path(number))
        (self.top / "tmp" / str(number)).unlink()
        sync(self.top / "new")


class CarelessMaildir(Maildir):
    """Does not sync the directory of the link."""

    def keep(self, number: int, text: bytes) -> None:
        write_synced(self.top / "tmp" / str(number), text)
        self.path(number).unlink(missing_ok=True)
        os.link(self.top / "tmp" / str(number), self.path(number))


class RenamedDirectory(Records):
    """Makes its directory under another name and renames it, as etcd does with its log."""

    def prepare(self) -> None:
        new = self.top / "log.tmp"
        if not (self.top / "log").exists():
            new.mkdir(exist_ok=True)
            write_synced(new / "head", b"head")
            sync(new)
            new.rename(self.top / "log")
            sync(self.top)

    def path(self, number: int) -> Path:
        return self.top / "log" / str(number)

    def keep(self, number: int, text: bytes) -> None:
        write_synced(self.path(number), text)
        sync(self.top / "log")


class CarelessRenamedDirectory(RenamedDirectory):
    """Does not sync the directory that the renamed one is in."""

    def prepare(self) -> None:
        new = self.top / "log.tmp"
        if not (self.top / "log").exists():
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            sync(self.top)
            new.rename(self.top / "log")


class Unnamed(Records):
    """Writes each message into a file without a name, syncs it and links it."""

    def keep(self, number: int, text: bytes) -> None:
        file = os.open(self.top, os.O_TMPFILE | os.O_WRONLY)
        os.write(file, text)
        self.sync_content(file)
        self.path(number).unlink(missing_ok=True)
        os.link(f"/proc/self/fd/{file}", self.path(number), src_dir_fd=file)  # this follows the link
        os.close(file)
        sync(self.top)

    def sync_content(self, file: int) -> None:
        os.fsync(file)


class CarelessUnnamed(Unnamed):
    """Does not sync the content."""

    def sync_content(self, file: int) -> None: ...


class Sparse(Records):
    """Has a sparse file of 1 GiB, and keeps a count and each message in it."""

    syncs = True

    def prepare(self) -> None:
        self.file = os.open(self.top / "big", os.O_RDWR | os.O_CREAT)
        os.ftruncate(self.file, GIB)
        os.fsync(self.file)
        sync(self.top)
        for number in itertools.count():
            (size_bytes,) = struct.unpack(">I", os.pread(self.file, 4, number << 20))
            if not size_bytes:
                break
            text = os.pread(self.file, size_bytes, (number << 20) + 8192)
            topic, queue, body = json.loads(text)
            self.bodies.append((topic, queue, bytes.fromhex(body)))

    def keep(self, number: int, text: bytes) -> None:
        os.pwrite(self.file, text, (number << 20) + 8192)
        if self.syncs:
            os.fsync(self.file)
        os.pwrite(self.file, struct.pack(">I", len(text)), number << 20)
        if self.syncs:
            os.fsync(self.file)


class CarelessSparse(Sparse):
    """Syncs nothing after the opening."""

    syncs = False


LIFE: tuple[Operation, ...] = (
    Put(body_bytes=8), Crash(back=1), Put(body_bytes=40), Put(), Crash(back=3), Put(), Close(), Open(), Crash(),
    Put(), Crash(kill=True, back=2), Put(), Crash(others="kept"), Crash(),
)  # fmt: skip


@pytest.mark.slow
@watched
@pytest.mark.parametrize("disk", ["posix-strict", "journal"])
@pytest.mark.parametrize("name", ["Maildir", "RenamedDirectory", "Unnamed", "Sparse"])
def test_correct_store_holds_and_loses_power(name: str, disk: Disk) -> None:
    settings = Settings(target=f"{__file__}:{name}", disk=disk)
    trial = TargetTrial(settings)
    for operation in LIFE:
        trial.run(operation)
        assert trial.why_no_power_loss == ""
    trial.end()
    assert len(trial.losses) == sum(isinstance(each, Crash) and not each.kill for each in LIFE)


@watched
@pytest.mark.parametrize("name", ["CarelessMaildir", "CarelessRenamedDirectory", "CarelessUnnamed", "CarelessSparse"])
def test_store_without_a_sync_loses_a_message(name: str) -> None:
    case = Case(Settings(target=f"{__file__}:{name}"), (Put(body_bytes=8), Crash()))
    with choose_tracker("auto") as tracker:
        failure = replay(case, tracker=tracker)
    assert failure is not None
    assert failure.broken.contract in (2, 7)  # lost, or an empty file that does not open


class RemovedDirectory(Maildir):
    """Removes a directory at each close, and makes it again."""

    def close(self) -> None:
        shutil.rmtree(self.top / "tmp")


class LinksLater(Maildir):
    """Makes a symbolic link at its second opening, after which no power loss can be made."""

    def prepare(self) -> None:
        if (self.top / "tmp").exists() and not (self.top / "link").is_symlink():
            (self.top / "link").symlink_to("tmp")
        super().prepare()


@pytest.mark.slow
@watched
def test_directory_that_a_close_removes_does_not_end_a_campaign() -> None:
    plan = TargetPlan(Settings(target=f"{__file__}:RemovedDirectory"), states=40, seed=2)
    with choose_tracker("auto") as tracker:
        result = run_target_campaign(plan, tracker=tracker)
    assert result.verdict is Verdict.HOLDS
    assert result.tally.hit["power"]


@pytest.mark.slow
@watched
def test_state_without_a_power_loss_is_counted_apart() -> None:
    """Symptom: exit code 2 in the middle of a run."""
    plan = TargetPlan(Settings(target=f"{__file__}:LinksLater"), states=40, seed=2)
    with choose_tracker("auto") as tracker:
        result = run_target_campaign(plan, tracker=tracker)
    assert result.tally.states == 40
    assert result.tally.hit["power"]
    assert result.tally.without_power


def test_entries_of_a_journal_have_no_hidden_kind() -> None:
    """A new kind of entry has to be known to the maker and to the checker."""
    entries: list[Entry] = [DirectoryMade("/a"), DirectoryRenamed("/a", "/b")]
    certificate = certify(Image(ROOT, {}), entries, 2, {"mkdir /a": 1, "rename /a /b": 1}, disk="posix-strict")
    assert [claim.entry for claim in certificate.operations] == [0, 1]


def test_directory_below_one_that_is_not_durable_is_moved() -> None:
    """A sync of a new directory commits what is in it, while the directory itself may be lost."""
    journal: list[Entry] = [
        DirectoryMade("/a"),
        DirectoryMade("/a/b"),
        DirectorySynced("/a"),
        DirectoryRenamed("/a/b", "/a/c"),
    ]
    base = Image(frozenset({"/"}), {})
    state = disk_state(base, journal, len(journal), disk="posix-strict")
    for choices, expected in (
        ({}, {"/"}),
        ({"mkdir /a": 1}, {"/", "/a", "/a/b"}),
        ({"mkdir /a": 1, "rename /a/b /a/c": 1}, {"/", "/a", "/a/c"}),
    ):
        image = compose(state, choices)
        assert image.directories == expected
        assert_legal(base, journal, len(journal), choices, image, disk="posix-strict")
