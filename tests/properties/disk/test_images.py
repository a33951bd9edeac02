"""Test crash images fact by fact: the effect of each choice, and the simplest choice."""

import pytest

from tornpage.model.operations import Choice
from tornpage.properties.disk.certificate import assert_legal, certify
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import JOURNAL_WRITE, Choices, compose, disk_state, in_flight_writes, mixed
from tornpage.properties.disk.journal import (
    DirectoryMade,
    DirectorySynced,
    Entry,
    FileCreated,
    FileRenamed,
    FileSynced,
    FileUnlinked,
    PageWritten,
    ProcessKilled,
    Resized,
)
from tornpage.properties.program.case import Disk

PAGE = 4096
OLD, ONE, TWO = b"o" * PAGE, b"1" * PAGE, b"2" * PAGE
EMPTY = Image(frozenset({"/"}), {})
BASE = Image(frozenset({"/", "/s"}), {"/s/log": OLD * 2})
REWRITTEN: list[Entry] = [PageWritten(0, 0, ONE), PageWritten(0, 0, TWO), PageWritten(0, 1, ONE)]
GROWN: list[Entry] = [Resized(0, 3 * PAGE), PageWritten(0, 2, ONE), Resized(0, 4 * PAGE)]
NESTED: list[Entry] = [
    DirectoryMade("/a"),
    DirectoryMade("/a/b"),
    FileCreated(0, "/a/b/x"),
    FileCreated(1, "/y"),
]


def image_of(base: Image, journal: list[Entry], choices: Choices, disk: Disk = "posix-strict") -> Image:
    """Compose the image of a crash at the end and check it with the independent checker."""
    image = compose(disk_state(base, journal, len(journal), disk=disk), choices)
    assert_legal(base, journal, len(journal), choices, image, disk=disk)
    return image


@pytest.mark.parametrize("disk", ["posix-strict", "journal"])
@pytest.mark.parametrize("journal", [REWRITTEN, GROWN, [*REWRITTEN, *GROWN]], ids=["rewritten", "grown", "both"])
def test_choice_0_means_that_nothing_unsynced_survived(journal: list[Entry], disk: Disk) -> None:
    open_facts = in_flight_writes(disk_state(BASE, journal, len(journal), disk=disk))
    assert open_facts
    assert image_of(BASE, journal, {}, disk) == BASE
    assert image_of(BASE, journal, {fact.name: 0 for fact in open_facts}, disk) == BASE


@pytest.mark.parametrize("disk", ["posix-strict", "journal"])
def test_choice_0_means_that_no_new_name_survived(disk: Disk) -> None:
    assert image_of(EMPTY, NESTED, {}, disk) == EMPTY


@pytest.mark.parametrize(("choice", "expected"), [(0, OLD), (1, ONE), (2, TWO)])
def test_a_page_holds_the_version_chosen(choice: Choice, expected: bytes) -> None:
    assert image_of(BASE, REWRITTEN, {"page /s/log 0": choice}).files["/s/log"] == expected + OLD


def test_a_sync_closes_the_page_and_a_failed_one_does_not() -> None:
    failed = image_of(BASE, [*REWRITTEN, FileSynced(0, succeeded=False)], {})
    synced = image_of(BASE, [*REWRITTEN, FileSynced(0, succeeded=True)], {"page /s/log 0": 1})
    assert failed.files["/s/log"] == OLD * 2
    assert synced.files["/s/log"] == TWO + ONE


@pytest.mark.parametrize(
    ("choice", "sectors"),
    [((0, 2, 0b0000_0001), "2ooooooo"), ((1, 2, 0b1010_0000), "111112" + "12"), ((2, 0, 0b0000_1111), "oooo2222")],
)
def test_a_torn_page_takes_each_sector_by_its_bit(choice: Choice, sectors: str) -> None:
    page = image_of(BASE, REWRITTEN, {"page /s/log 0": choice}).files["/s/log"][:PAGE]
    assert page == b"".join(sector.encode() * 512 for sector in sectors)


def test_a_tear_of_a_short_page_fills_up_with_zeros() -> None:
    assert mixed(b"a" * 100, b"b" * 600, 0b10) == b"a" * 100 + bytes(412) + b"b" * 88
    assert mixed(b"a" * 600, b"b" * 100, 0b10) == b"a" * 512 + bytes(88)


@pytest.mark.parametrize(
    ("size_choice", "pages", "expected"),
    [
        (0, 1, OLD * 2),  # the page has survived, but no name leads to it
        (1, 0, OLD * 2 + bytes(PAGE)),
        (1, 1, OLD * 2 + ONE),
        (2, 1, OLD * 2 + ONE + bytes(PAGE)),
    ],
)
def test_a_lost_size_cuts_off_pages_that_survived(size_choice: int, pages: int, expected: bytes) -> None:
    choices = {"size /s/log": size_choice, "page /s/log 2": pages}
    assert image_of(BASE, GROWN, choices).files["/s/log"] == expected


def test_a_new_file_that_was_never_synced_may_be_empty() -> None:
    journal: list[Entry] = [FileCreated(1, "/s/new"), Resized(1, PAGE), PageWritten(1, 0, ONE), DirectorySynced("/s")]
    assert image_of(BASE, journal, {}).files["/s/new"] == b""
    assert image_of(BASE, journal, {"size /s/new": 1}).files["/s/new"] == bytes(PAGE)


def test_a_lost_directory_hides_what_is_below_it() -> None:
    """This includes names that its own directories made durable.

    A new directory needs its parents synced.
    """
    journal = [*NESTED, DirectorySynced("/a/b"), DirectorySynced("/a")]
    hidden = image_of(EMPTY, journal, {"create /y": 1})
    assert hidden == Image(frozenset({"/"}), {"/y": b""})
    shown = image_of(EMPTY, journal, {"mkdir /a": 1})
    assert shown == Image(frozenset({"/", "/a", "/a/b"}), {"/a/b/x": b""})


def test_posix_strict_keeps_any_subset_of_names() -> None:
    kept = image_of(EMPTY, NESTED, {"mkdir /a": 1, "mkdir /a/b": 1, "create /y": 1})
    assert kept == Image(frozenset({"/", "/a", "/a/b"}), {"/y": b""})
    assert image_of(EMPTY, NESTED, {"mkdir /a/b": 1, "create /a/b/x": 1}) == EMPTY


def test_posix_strict_may_lose_the_name_of_a_synced_file() -> None:
    journal: list[Entry] = [FileCreated(1, "/s/new"), FileSynced(1, succeeded=True)]
    assert set(image_of(BASE, journal, {}).files) == {"/s/log"}
    assert set(image_of(BASE, [*journal, DirectorySynced("/s")], {}).files) == {"/s/log", "/s/new"}
    assert set(image_of(BASE, [*journal, DirectorySynced("/")], {}).files) == {"/s/log"}


def test_a_rename_loses_and_takes_both_names_at_once() -> None:
    journal: list[Entry] = [
        FileCreated(1, "/s/new"),
        Resized(1, 1),
        PageWritten(1, 0, b"n"),
        FileSynced(1, succeeded=True),
        FileRenamed(1, "/s/new", "/s/log"),
    ]
    created, renamed = "create /s/new", "rename /s/new /s/log"
    assert dict(image_of(BASE, journal, {created: 1}).files) == {"/s/log": OLD * 2, "/s/new": b"n"}
    assert dict(image_of(BASE, journal, {created: 1, renamed: 1}).files) == {"/s/log": b"n"}
    assert dict(image_of(BASE, journal, {renamed: 1}).files) == {"/s/log": b"n"}


def test_an_unlink_may_be_lost() -> None:
    journal: list[Entry] = [FileUnlinked(0, "/s/log")]
    assert dict(image_of(BASE, journal, {}).files) == {"/s/log": OLD * 2}
    assert dict(image_of(BASE, journal, {"unlink /s/log": 1}).files) == {}
    assert dict(image_of(BASE, [*journal, DirectorySynced("/s")], {}).files) == {}


def test_an_operation_does_not_touch_a_name_of_another_file() -> None:
    """The removal of the name `/s/log` is lost, and later operations belong to the other file."""
    journal: list[Entry] = [FileCreated(1, "/s/new"), FileRenamed(1, "/s/new", "/s/log")]
    unlinked = image_of(BASE, [*journal, FileUnlinked(1, "/s/log")], {"unlink /s/log": 1})
    renamed = image_of(BASE, [*journal, FileRenamed(1, "/s/log", "/s/x")], {"rename /s/log /s/x": 1})
    assert dict(unlinked.files) == {"/s/log": OLD * 2}
    assert dict(renamed.files) == {"/s/log": OLD * 2, "/s/x": b""}


def test_two_files_of_one_name_have_facts_of_their_own() -> None:
    journal: list[Entry] = []
    for inode, content in ((1, b"a"), (2, b"b")):
        journal += [FileCreated(inode, "/s/x"), Resized(inode, 1), PageWritten(inode, 0, content)]
        journal += [FileUnlinked(inode, "/s/x")] if inode == 1 else []
    names = {fact.name for fact in in_flight_writes(disk_state(BASE, journal, len(journal), disk="posix-strict"))}
    assert {"create /s/x", "create /s/x (2)", "size /s/x", "size /s/x#2", "page /s/x 0", "page /s/x#2 0"} <= names
    first = {"create /s/x": 1, "size /s/x": 1, "page /s/x 0": 1}
    second = {"create /s/x (2)": 1, "size /s/x#2": 1, "page /s/x#2 0": 1}
    assert image_of(BASE, journal, first).files["/s/x"] == b"a"
    assert image_of(BASE, journal, second).files["/s/x"] == b"b"
    assert image_of(BASE, journal, {**first, **second}).files["/s/x"] == b"b"


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, Image(frozenset({"/"}), {})),
        (1, Image(frozenset({"/", "/a"}), {})),
        (2, Image(frozenset({"/", "/a", "/a/b"}), {})),
        (3, Image(frozenset({"/", "/a", "/a/b"}), {"/a/b/x": b""})),
        (4, Image(frozenset({"/", "/a", "/a/b"}), {"/a/b/x": b"", "/y": b""})),
    ],
)
def test_the_journal_profile_keeps_a_prefix_of_names(count: int, expected: Image) -> None:
    assert image_of(EMPTY, NESTED, {JOURNAL_WRITE: count}, "journal") == expected


@pytest.mark.parametrize("disk", ["journal", "ext4", "xfs", "btrfs"])
def test_a_sync_of_a_new_file_makes_its_name_and_its_directories_durable(disk: Disk) -> None:
    synced = image_of(EMPTY, [*NESTED, FileSynced(0, succeeded=True)], {}, disk)
    assert synced == Image(frozenset({"/", "/a", "/a/b"}), {"/a/b/x": b""})  # and not /y, which came later
    assert image_of(EMPTY, [*NESTED, FileSynced(0, succeeded=False)], {}, disk) == EMPTY


@pytest.mark.parametrize(("disk", "kept"), [("ext4", {"/a/b/x", "/y"}), ("xfs", {"/a/b/x", "/y"}), ("btrfs", {"/y"})])
def test_a_directory_sync_commits_everything_before_where_the_journal_is_one(disk: Disk, kept: set[str]) -> None:
    assert image_of(EMPTY, [*NESTED, DirectorySynced("/a")], {}, disk).directories == {"/", "/a", "/a/b"}
    assert image_of(EMPTY, [*NESTED, DirectorySynced("/")], {}, disk).files.keys() == kept


def test_a_kill_keeps_all() -> None:
    journal = [*REWRITTEN, *GROWN, FileCreated(1, "/s/new"), DirectoryMade("/s/d"), ProcessKilled()]
    assert in_flight_writes(disk_state(BASE, journal, len(journal), disk="kill")) == []
    expected = Image(BASE.directories | {"/s/d"}, {"/s/log": TWO + ONE + ONE + bytes(PAGE), "/s/new": b""})
    assert image_of(BASE, journal, {}, "kill") == expected
    assert image_of(BASE, journal, {"page /s/log 0": 1, "size /s/log": 1}, "kill") == expected
    assert image_of(BASE, journal, {}) == BASE  # a power loss after the kill takes what the kill had left


UNUSABLE: list[Choices] = [
    {"page /s/other 0": 1, "size /s/other": 1, "page /s/log 9": 1, "create /s/never": 1, JOURNAL_WRITE: 1},
    {"page /s/log 0": 3},
    {"page /s/log 0": (0, 3, 255)},
    {"page /s/log 0": (9, 1, 1)},
    {"page /s/log 0": (0, 0, 255)},
    {"page /s/log 0": (0, 1, 0)},
    {"page /s/log 0": (0, 1, 256)},
    {"size /s/log": 3},
    {"size /s/log": (1, 2, 3)},
    {"size /s/log": -1},
]


@pytest.mark.parametrize("choices", UNUSABLE, ids=str)
def test_unknown_facts_and_too_large_numbers_count_as_0(choices: Choices) -> None:
    journal = [*REWRITTEN, *GROWN]
    assert image_of(BASE, journal, choices) == BASE
    assert certify(BASE, journal, 6, choices, disk="posix-strict") == certify(BASE, journal, 6, {}, disk="posix-strict")


@pytest.mark.parametrize(
    ("base", "journal", "choices", "disk"),
    [
        (EMPTY, NESTED, {JOURNAL_WRITE: 5}, "journal"),
        (EMPTY, NESTED, {JOURNAL_WRITE: -1}, "journal"),
        (EMPTY, NESTED, {"create /y": 2}, "posix-strict"),
        (BASE, REWRITTEN, {"page /s/log 0": -1}, "posix-strict"),
        (BASE, REWRITTEN, {"page /s/log 0": (0, -1, 255)}, "posix-strict"),
    ],
)
def test_numbers_no_fact_has_count_as_0_too(base: Image, journal: list[Entry], choices: Choices, disk: Disk) -> None:
    assert image_of(base, journal, choices, disk) == base


def test_only_the_entries_before_the_position_count() -> None:
    images = [compose(disk_state(BASE, GROWN, n, disk="kill"), {}).files["/s/log"] for n in range(4)]
    assert [len(content) for content in images] == [2 * PAGE, 3 * PAGE, 3 * PAGE, 4 * PAGE]
    assert [content[2 * PAGE :].rstrip(b"\0") for content in images] == [b"", b"", ONE, ONE]
