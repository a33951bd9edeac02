"""Test that the legality checker refuses each forged image.

test_certificate.py shows that it accepts legal ones. A forgery changes image and claims together wherever a comparison
of the two would be enough to notice it.
"""

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.properties.disk.test_certificate import DISKS, FULL, random_steps, recorded, shapes_of
from tornpage.properties.disk.certificate import Certificate, FileClaim, OperationClaim, PageClaim, certify
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.images import JOURNAL_WRITE, Choices, compose, disk_state, in_flight_writes
from tornpage.properties.disk.journal import (
    DirectoryMade,
    DirectorySynced,
    Entry,
    FileCreated,
    FileSynced,
    PageWritten,
    Resized,
)
from tornpage.properties.disk.legality import objections
from tornpage.properties.disk.recording_files import EMPTY_DISK
from tornpage.properties.disk.sampling import draw
from tornpage.properties.program.case import Disk

PAGE = 4096
A, B, C, D, E = (letter * PAGE for letter in (b"a", b"b", b"c", b"d", b"e"))
BASE = Image(frozenset({"/", "/s"}), {"/s/old": b"o" * PAGE})
JOURNAL: list[Entry] = [
    FileCreated(1, "/s/new"),
    Resized(1, 2 * PAGE),
    PageWritten(1, 0, A),
    PageWritten(1, 0, B),
    PageWritten(1, 1, A),
    FileSynced(1, succeeded=True),
    DirectorySynced("/s"),
    PageWritten(1, 0, C),
    FileSynced(1, succeeded=False),
    PageWritten(1, 0, D),
    FileCreated(2, "/s/late"),
    DirectoryMade("/s/directory"),
    FileCreated(3, "/s/later"),
    Resized(1, 3 * PAGE),
    # the crash
    PageWritten(1, 0, E),
    FileCreated(4, "/s/tomorrow"),
    FileSynced(1, succeeded=True),
    DirectorySynced("/s"),
]
CRASH = 14
PAGE_0, TEAR = "page /s/new 0", (0, 2, 0b0000_0110)


def legal(choices: Choices, disk: Disk = "posix-strict") -> tuple[Image, Certificate]:
    """Return a legal image and its certificate, which the checker has to accept."""
    image = compose(disk_state(BASE, JOURNAL, CRASH, disk=disk), choices)
    certificate = certify(BASE, JOURNAL, CRASH, choices, disk=disk)
    assert objections(BASE, JOURNAL, image, certificate) == []
    return image, certificate


def claim_of(certificate: Certificate, path: str) -> FileClaim:
    (claim,) = (claim for claim in certificate.files if claim.path == path)
    return claim


def forge(
    made: tuple[Image, Certificate],
    contents: Mapping[str, bytes | None] | None = None,
    *,
    entries: Sequence[int] | None = None,
    **claims: Any,
) -> tuple[Image, Certificate]:
    """Change contents (None: missing), the surviving operations, and claims about /s/new."""
    image, certificate = made
    files = {path: content for path, content in {**image.files, **(contents or {})}.items() if content is not None}
    kept = tuple(replace(claim, **claims) if claim.path == "/s/new" else claim for claim in certificate.files)
    kept = tuple(claim for claim in kept if claim.path in files)
    operations = certificate.operations
    if entries is not None:
        known = {claim.entry: claim for claim in operations}
        operations = tuple(known.get(n, OperationClaim(n, "/s", None, 6, 17)) for n in entries)
    return Image(image.directories, files), replace(certificate, files=kept, operations=operations)


def versions(*origins: int, mask: int | None = None) -> tuple[PageClaim, ...]:
    return (PageClaim(0, origins, mask),)


def torn(old: bytes, new: bytes, mask: int) -> bytes:
    return b"".join((new if mask >> n & 1 else old)[n * 512 : (n + 1) * 512] for n in range(8))


def flipped(content: bytes, position: int) -> bytes:
    return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]


def new_file(position: int, size_bytes: int) -> FileClaim:
    return FileClaim("/s/never", position, 0, size_bytes, "base", None, None)


Forgery = Callable[[], tuple[tuple[Image, Certificate], tuple[Image, Certificate]]]


def forgery(choices: Choices, disk: Disk = "posix-strict", **changes: Any) -> Forgery:
    """Return a function that makes a legal image and the forged one."""

    def make() -> tuple[tuple[Image, Certificate], tuple[Image, Certificate]]:
        made = legal(choices, disk)
        return made, forge(made, **changes)

    return make


def a_file_nobody_created() -> tuple[tuple[Image, Certificate], tuple[Image, Certificate]]:
    image, certificate = made = legal({})
    claim = replace(new_file(2, 0), path="/s/late", named_by=10)  # it was created, but its name did not survive
    forged = replace(certificate, files=tuple(sorted((*certificate.files, claim), key=lambda file: file.path)))
    return made, (Image(image.directories, {**image.files, "/s/late": b""}), forged)


def a_directory_that_did_not_survive() -> tuple[tuple[Image, Certificate], tuple[Image, Certificate]]:
    image, certificate = made = legal({})
    return made, (Image(image.directories | {"/s/directory"}, image.files), certificate)


FORGERIES: dict[str, tuple[Forgery, str]] = {
    "a flipped byte in an open page": (
        forgery({PAGE_0: 1}, contents={"/s/new": flipped(C, 4095) + A}), "page 0 does not hold what"),
    "a flipped byte in a durable page": (
        forgery({PAGE_0: 1}, contents={"/s/new": C + flipped(A, 0)}), "page 1 does not have its durable"),
    "a flipped byte in an untouched file": (
        forgery({}, contents={"/s/old": flipped(BASE.files["/s/old"], 7)}), "/s/old: page 0 does not have its durable"),
    "a version from before the barrier": (
        forgery({}, contents={"/s/new": A + A}, pages=versions(2)), "may not have the version of entry 2"),
    "a version from after the crash": (
        forgery({}, contents={"/s/new": E + A}, pages=versions(14)), "may not have the version of entry 14"),
    "a version of another page": (
        forgery({}, contents={"/s/new": A + A}, pages=versions(4)), "may not have the version of entry 4"),
    "a content never written": (
        forgery({}, contents={"/s/new": b"x" * PAGE + A}), "page 0 does not hold what entries (3,) wrote"),
    "another permitted version than claimed": (
        forgery({PAGE_0: 1}, contents={"/s/new": D + A}), "page 0 does not hold what entries (7,) wrote"),
    "the first content of a page that was synced": (
        forgery({}, contents={"/s/new": bytes(PAGE) + A}, pages=(PageClaim(0, ("base",)),)),
        "may not have the version of entry base"),
    "a dropped page inside a synced range": (
        forgery({}, contents={"/s/new": B + bytes(PAGE)}), "page 1 does not have its durable content"),
    "a lost durable size": (
        forgery({}, contents={"/s/new": b""}, size_bytes=0, sized_by="base", pages=()),
        "the size set at entry base may not survive"),
    "a size that was not set": (
        forgery({}, contents={"/s/new": B + A + b"\0"}, size_bytes=2 * PAGE + 1), "set 8192 bytes, not 8193"),
    "a shorter file than claimed": (
        forgery({}, contents={"/s/new": B + A[:-1]}), "it has 8191 bytes, not the 8192 claimed"),
    "a durable file is missing": (
        forgery({}, contents={"/s/new": None}, entries=[]), "the directory operation at entry 0 is lost"),
    "a durable file is missing although its operation survived": (
        forgery({}, contents={"/s/new": None}), "the file /s/new is missing"),
    "the file from before history is missing": (
        forgery({}, contents={"/s/old": None}), "the file /s/old is missing"),
    "a file that never was": (
        forgery({}, contents={"/s/never": b"x"}), "the file /s/never is there"),
    "a file whose name did not survive": (a_file_nobody_created, "the file /s/late is there"),
    "a directory that did not survive": (a_directory_that_did_not_survive, "the directory /s/directory is there"),
    "a name from after the crash": (
        forgery({}, contents={"/s/tomorrow": b""}, entries=[0, 15]), "entry 15 is not a directory operation before"),
    "a wrong mask": (
        forgery({PAGE_0: TEAR}, pages=versions(3, 9, mask=0b0000_0111)), "page 0 does not hold what entries (3, 9)"),
    "a tear with a version from before the barrier": (
        forgery({PAGE_0: TEAR}, contents={"/s/new": torn(A, D, 6) + A}, pages=versions(2, 9, mask=6)),
        "may not have the version of entry 2"),
    "a tear of three versions": (
        forgery({PAGE_0: TEAR}, contents={"/s/new": torn(torn(B, D, 6), C, 128) + A}), "does not hold what"),
    "a tear below a sector": (
        forgery({PAGE_0: TEAR}, contents={"/s/new": B[:100] + D[100:] + A}), "does not hold what"),
    "a tear of a version with itself": (
        forgery({PAGE_0: TEAR}, contents={"/s/new": D + A}, pages=versions(9, 9, mask=6)), "not a tear of two"),
    "a mask that tears nothing": (
        forgery({PAGE_0: TEAR}, contents={"/s/new": B + A}, pages=versions(3, 9, mask=0)), "not a tear of two"),
    "no claim about an open page": (
        forgery({}, pages=()), "page 0 was in flight, and nothing is claimed"),
    "a claim about a closed page": (
        forgery({}, pages=(PageClaim(0, (3,)), PageClaim(1, (4,)))), "page 1 is claimed, but no version was in flight"),
    "a claim outside the file": (
        forgery({}, pages=(PageClaim(0, (3,)), PageClaim(2, ("base",)))), "page 2 is claimed, but lies outside"),
    "a failed sync as a barrier": (
        forgery({}, barrier_before=8), "its barriers are (5, 16), not (8, 16)"),
    "a later barrier forgotten": (
        forgery({}, barrier_after=None), "its barriers are (5, 16), not (5, None)"),
    "pages claimed twice": (
        forgery({}, pages=(PageClaim(0, (3,)), PageClaim(0, (3,)))), "its pages are not claimed once each"),
    "operations out of order": (
        forgery({"mkdir /s/directory": 1}, entries=[11, 0]), "directory operations [11, 0] are not in order"),
    "an operation claimed twice": (
        forgery({}, entries=[0, 0]), "directory operations [0, 0] are not in order"),
    "a name by another entry": (
        forgery({}, named_by="base"), "names inode 1 by entry 0, not 1 by base"),
    "another file under the name": (
        forgery({}, inode=0), "names inode 1 by entry 0, not 0 by 0"),
    "no prefix in the journal profile": (
        forgery({JOURNAL_WRITE: 3}, "journal", contents={"/s/late": None}, entries=[0, 11, 12]),
        "entry 10 is lost, but a later one survived"),
    "a name lost in a kill": (
        forgery({}, "kill", contents={"/s/later": None}, entries=[0, 10, 11]), "entry 12 is lost, but only"),
    "an older version after a kill": (
        forgery({}, "kill", contents={"/s/new": C + A + bytes(PAGE)}, pages=versions(7)), "of entry 7"),
    "an older size after a kill": (
        forgery({}, "kill", contents={"/s/new": D + A}, size_bytes=2 * PAGE, sized_by=1), "set at entry 1 may not"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGERIES)
def test_checker_refuses(name: str) -> None:
    make, expected = FORGERIES[name]
    (image, certificate), forged = make()
    assert forged != (image, certificate)
    found = objections(BASE, JOURNAL, *forged)
    assert any(expected in reason for reason in found), found


@pytest.mark.parametrize(
    "claim",
    [
        OperationClaim(0, "/", 6, 6, 17),
        OperationClaim(0, "/s", None, 6, 17),
        OperationClaim(0, "/s", 5, 6, 17),
        OperationClaim(0, "/s", 6, None, 17),
        OperationClaim(0, "/s", 6, 6, None),
    ],
    ids=str,
)
def test_checker_refuses_wrong_barriers_of_an_operation(claim: OperationClaim) -> None:
    image, certificate = legal({})
    assert certificate.operations == (OperationClaim(0, "/s", 6, 6, 17),)
    (reason,) = objections(BASE, JOURNAL, image, replace(certificate, operations=(claim,)))
    assert "the barriers of the directory operation at entry 0 are ('/s', 6, 6, 17), not" in reason


def test_checker_refuses_a_file_without_a_claim_and_one_with_two() -> None:
    image, certificate = legal({})
    silent, doubled = certificate.files[1:], (certificate.files[0], *certificate.files)
    found = objections(BASE, JOURNAL, image, replace(certificate, files=silent))
    assert found == ["the claim about file /s/new is missing, but a surviving name leads to it"]
    assert objections(BASE, JOURNAL, image, replace(certificate, files=doubled)) == ["a file is claimed twice"]


def test_checker_refuses_a_subset_of_names_in_the_journal_profile_only() -> None:
    choices: Choices = {"mkdir /s/directory": 1}
    image, certificate = legal(choices)
    assert "but a later one survived" in str(objections(BASE, JOURNAL, image, replace(certificate, disk="journal")))


def test_checker_refuses_to_lose_the_name_of_a_synced_file_in_the_journal_profile_only() -> None:
    journal = JOURNAL[:6]
    certificate = certify(BASE, journal, 6, {}, disk="posix-strict")
    image = compose(disk_state(BASE, journal, 6, disk="posix-strict"), {})
    assert objections(BASE, journal, image, certificate) == []
    found = objections(BASE, journal, image, replace(certificate, disk="journal"))
    assert found == ["the directory operation at entry 0 is lost, but durable since entry 5"]


def test_checker_refuses_one_path_for_a_file_and_a_directory() -> None:
    journal: list[Entry] = [DirectoryMade("/s/old")]
    certificate = Certificate(
        1,
        "posix-strict",
        (FileClaim("/s/old", 0, "base", PAGE, "base", None, None),),
        (OperationClaim(0, "/s", None, None, None),),
    )
    image = Image(BASE.directories | {"/s/old"}, BASE.files)
    assert objections(BASE, journal, image, certificate)[0] == "/s/old is both a file and a directory"


def test_checker_refuses_a_file_below_a_lost_directory() -> None:
    journal: list[Entry] = [DirectoryMade("/s/d"), FileCreated(1, "/s/d/x"), DirectorySynced("/s/d")]
    certificate = certify(BASE, journal, 3, {}, disk="posix-strict")
    image = compose(disk_state(BASE, journal, 3, disk="posix-strict"), {})
    assert objections(BASE, journal, image, certificate) == []
    shown = Image(image.directories, {**image.files, "/s/d/x": b""})
    assert "the file /s/d/x is there, but no surviving name leads to it" in objections(
        BASE, journal, shown, certificate
    )


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([Resized(0, 10)], "entry 0 shrinks inode 0"),
        ([PageWritten(0, 1, b"x")], "entry 0 writes outside inode 0"),
        ([PageWritten(0, 0, b"x" * 5000)], "entry 0 writes outside inode 0"),
        ([FileSynced(7, succeeded=True)], "entry 0 is about inode 7, which does not exist"),
        ([FileCreated(0, "/s/x")], "entry 0 creates inode 0 a second time"),
    ],
)
def test_checker_says_when_it_has_no_rule_for_a_journal(entries: list[Entry], expected: str) -> None:
    untouched = certify(BASE, [], 0, {}, disk="posix-strict")
    assert objections(BASE, [], BASE, untouched) == []
    assert expected in objections(BASE, entries, BASE, untouched)[0]


def test_checker_refuses_a_crash_outside_the_journal_and_an_unknown_disk() -> None:
    image, certificate = legal({})
    assert "outside the journal" in objections(BASE, JOURNAL, image, replace(certificate, position=19))[0]
    unknown: Any = "tape"
    assert objections(BASE, JOURNAL, image, replace(certificate, disk=unknown)) == ["there is no disk 'tape'"]


def test_checker_loads_nothing_of_ours_but_the_journal() -> None:
    program = (
        "import sys, tornpage.properties.disk.legality; print(*(m for m in sys.modules if m.startswith('tornpage')))"
    )
    run = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) == {
        "tornpage",
        "tornpage.properties",
        "tornpage.properties.disk",
        "tornpage.properties.disk.legality",
        "tornpage.properties.disk.legality_files",
        "tornpage.properties.disk.legality_names",
        "tornpage.properties.disk.journal",
    }


# ---- forgeries of random images --------------------------------------------------------------------------------------


def mutations_of(
    image: Image, certificate: Certificate, journal: Sequence[Entry], rng: random.Random
) -> dict[str, tuple[Image, Certificate]]:
    """Return random forgeries that this image allows; none of them is legal."""
    files = dict(image.files)
    forged: dict[str, tuple[Image, Certificate]] = {}
    extra = f"/{rng.randrange(1 << 30)}"
    forged["invented file"] = Image(image.directories, {**files, extra: b""}), certificate
    forged["invented directory"] = Image(image.directories | {extra}, files), certificate
    if files:
        path = rng.choice(sorted(files))
        fewer = tuple(claim for claim in certificate.files if claim.path != path)
        without = {name: content for name, content in files.items() if name != path}
        forged["missing file"] = Image(image.directories, without), replace(certificate, files=fewer)
        longer = Image(image.directories, {**files, path: files[path] + b"\0"})
        forged["longer file"] = longer, certificate
    full = sorted(path for path, content in files.items() if content)
    if full:
        path = rng.choice(full)
        content = bytearray(files[path])
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        forged["flipped bit"] = Image(image.directories, {**files, path: bytes(content)}), certificate
    if certificate.operations:
        late = OperationClaim(len(journal), "/", None, None, None)
        forged["operation behind the crash"] = image, replace(certificate, operations=(*certificate.operations, late))
    for number, claim in enumerate(certificate.files):
        if claim.pages:
            silent = replace(claim, pages=claim.pages[1:])
            forged["unclaimed page"] = image, with_file(certificate, number, silent)
        if any(page.dropped_by is not None for page in claim.pages):
            forgotten = replace(claim, pages=tuple(replace(page, dropped_by=None) for page in claim.pages))
            forged["forgotten drop"] = image, with_file(certificate, number, forgotten)
        forged["invented barrier"] = image, with_file(certificate, number, replace(claim, barrier_before=len(journal)))
    return forged


def with_file(certificate: Certificate, number: int, claim: FileClaim) -> Certificate:
    files = certificate.files
    return replace(certificate, files=(*files[:number], claim, *files[number + 1 :]))


def test_random_histories_have_every_shape_and_each_forgery_is_refused() -> None:
    shapes: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for seed in range(150):
        rng = random.Random(f"legality {seed}")
        base = rng.choice([EMPTY_DISK, FULL])
        journal = recorded(base, random_steps(rng))
        disk = rng.choice(DISKS)
        for _ in range(5):
            position = rng.randrange(len(journal) + 1)
            state = disk_state(base, journal, position, disk=disk)
            choices = draw(in_flight_writes(state), rng)
            image, certificate = compose(state, choices), certify(base, journal, position, choices, disk=disk)
            assert objections(base, journal, image, certificate) == []
            shapes.update(shapes_of(base, journal, certificate))
            for name, (other, claims) in mutations_of(image, certificate, journal, rng).items():
                assert (other, claims) != (image, certificate), name
                assert objections(base, journal, other, claims), f"{name} goes unnoticed (seed {seed})"
                refused[name] += 1
    expected = {
        "durable operation", "lucky operation", "lost name", "lost size", "renamed", "torn page", "durable page",
        "lucky page", "name durable by file sync", "process killed before", "page passed by",
    }  # fmt: skip
    assert set(shapes) == expected
    assert min(shapes.values()) >= 10, shapes
    assert len(refused) == 9
    assert refused.pop("forgotten drop") >= 10
    assert min(refused.values()) >= 100, refused
