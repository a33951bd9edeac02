"""Compare store, inspect, audit and page over one set of damaged stores."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.pipeline.handmade import copied, overwrite
from tornpage import MessageStore, MessageStoreConfig
from tornpage.pipeline.audit.audit import audit_store
from tornpage.properties.inspect import Query, inspect_view
from tornpage.properties.judge.image import read_image
from tornpage.properties.judge.judgement import evidence_of

NAME = "03-rollover-blanks-retention"
VIEWS = ("log", "queues", "index", "checkpoint", "config", "groups")
MEANS_THE_SAME = {"IX_MIXED_SIZES", "IX_BROKEN", "IX_SLOTS_UNKNOWN"}
"""Codes about an index file of the wrong size; a reader that cannot tell its slots cannot compare its links."""


def first(root: Path, pattern: str) -> Path:
    return sorted(root.glob(pattern))[0]


def cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def zero_index_header(root: Path) -> None:
    overwrite(first(root, "index/*"), 0, bytes(40))


def short_index(root: Path) -> None:
    path = first(root, "index/*")
    cut(path, path.stat().st_size - 100)


def empty_queue_file(root: Path) -> None:
    cut(first(root, "consumequeue/*/*/*"), 0)


def short_queue_file(root: Path) -> None:
    cut(first(root, "consumequeue/*/*/*"), 100)


def missing_queue_file(root: Path) -> None:
    sorted(first(root, "consumequeue/*/*").iterdir())[1].unlink()


def zero_units(root: Path) -> None:
    overwrite(first(root, "consumequeue/*/*/*"), 60, bytes(40))


def bad_record(root: Path) -> None:
    overwrite(root / "commitlog/00000000000000098304", 300, b"damage")


def missing_log_file(root: Path) -> None:
    (root / "commitlog/00000000000000098304").unlink()


def short_log_file(root: Path) -> None:
    cut(root / "commitlog/00000000000000098304", 5000)


def zeros_in_the_log(root: Path) -> None:
    overwrite(root / "commitlog/00000000000000098304", 0, bytes(4096))


def swapped_log_files(root: Path) -> None:
    one, other = (root / f"commitlog/{base:020}" for base in (81920, 98304))
    one_content, other_content = one.read_bytes(), other.read_bytes()
    one.write_bytes(other_content)
    other.write_bytes(one_content)


def wrong_blank(root: Path) -> None:
    path = root / "commitlog/00000000000000098304"
    at = path.read_bytes().rindex(bytes.fromhex("cbd43194"))
    overwrite(path, at - 4, (7).to_bytes(4, "big"))


def bytes_after_zeros(root: Path) -> None:
    path = sorted((root / "commitlog").iterdir())[-1]
    end = len(path.read_bytes().rstrip(b"\0"))
    overwrite(path, end + 30, b"left of an earlier crash")


def garbage_in_a_queue(root: Path) -> None:
    path = sorted(first(root, "consumequeue/*/*").iterdir())[-1]
    overwrite(path, 0, bytes(range(7, 251)) + bytes(range(1, 157)))


def short_checkpoint(root: Path) -> None:
    cut(root / "checkpoint", 10)


DAMAGES = (
    zero_index_header,
    short_index,
    empty_queue_file,
    short_queue_file,
    missing_queue_file,
    zero_units,
    bad_record,
    missing_log_file,
    short_log_file,
    zeros_in_the_log,
    swapped_log_files,
    wrong_blank,
    bytes_after_zeros,
    garbage_in_a_queue,
    short_checkpoint,
)


def by_file(found: set[tuple[str, str, str]]) -> set[tuple[str, str, str]]:
    """Return (code, severity, file) of findings that every reader can make."""
    return {each for each in found if each[0].startswith(("CL_", "CP_")) or each[0] in FILE_CODES}


FILE_CODES = {"CQ_SHORT_FILE", "CQ_MIXED_SIZES", "CQ_GAP", "CQ_NOT_CONTIGUOUS", "IX_MIXED_SIZES", "IX_BROKEN"}


@pytest.mark.parametrize("is_unclean", [False, True], ids=["clean", "unclean"])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_inspect_and_audit_agree(tmp_path: Path, damage: Callable[[Path], None], is_unclean: bool) -> None:
    root = copied(NAME, tmp_path / "store")
    damage(root)
    if is_unclean:
        (root / "abort").touch()
    audit: set[tuple[str, str, str]] = {(each.code, each.severity, each.file) for each in audit_store(root).findings}
    inspect = {
        (each["code"], each["severity"], each["file"])
        for view in VIEWS
        for each in inspect_view(root, view, None, Query())["findings"]
    }
    assert by_file(audit) - by_file(inspect) <= {each for each in audit if each[0] == "IX_BROKEN"}
    assert by_file(inspect) <= by_file(audit)
    if damage in (zero_index_header, short_index):
        assert any(each[0] in MEANS_THE_SAME for each in inspect)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_audit_page_has_the_findings_of_the_audit(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """The page once had one damage more than the terminal."""
    from tornpage.outcomes.auditing import Asked, audit_outcome
    from tornpage.render.redacting import AS_IT_IS
    from tornpage.render.store_page import page_findings

    root = copied(NAME, tmp_path / "store")
    damage(root)
    outcome, _ = audit_outcome([str(root)], Asked(engine="plain"))
    shown = page_findings(str(root), outcome.findings, AS_IT_IS, file_bytes=None)
    severe = [each for each in shown if each["severity"] == "damage"]
    assert len(severe) == outcome.figures["damages"]


def test_one_record_is_not_both_a_tear_and_a_damage(tmp_path: Path) -> None:
    """The log once called it a tear, and the unit that points to it a damage."""
    root = copied(NAME, tmp_path / "store")
    bad_record(root)
    (root / "abort").touch()
    about = [each for each in audit_store(root).findings if each.code in ("CL_BAD_RECORD", "CQ_POINTS_NOWHERE")]
    assert len({each.severity for each in about}) == 1
    shutil.rmtree(root)


def worst(severities: set[str]) -> str:
    """Return the worst of some severities of findings about the log."""
    return next((each for each in ("damage", "tear") if each in severities), "none")


@pytest.mark.slow
@pytest.mark.parametrize("is_unclean", [False, True], ids=["clean", "unclean"])
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
def test_store_audit_and_judge_agree_about_the_log(
    tmp_path: Path, damage: Callable[[Path], None], is_unclean: bool
) -> None:
    root = copied(NAME, tmp_path / "store")
    damage(root)
    if is_unclean:
        (root / "abort").touch()
    with evidence_of(read_image(root)) as evidence:
        judged, opened = evidence.is_damaged, evidence.opened.store
        assert judged is (opened is not None and opened.read_only_reason is not None)
    audit = {each.severity for each in audit_store(root).findings if each.code.startswith("CL_")}
    config = MessageStoreConfig(
        mapped_file_size_commit_log=16384, mapped_file_size_consume_queue=400, max_hash_slot_num=100, max_index_num=120
    )
    with MessageStore.open(root, config) as store:
        found = {str(each.severity) for each in store.findings}
    assert worst(found) == worst(set(audit))
    assert judged is (worst(found) == "damage")
