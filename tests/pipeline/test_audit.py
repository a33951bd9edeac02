"""Test the audit without Spark: silent on sound stores, right file and place on damage.

It changes nothing.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import textwrap
import zlib
from pathlib import Path

import pytest

from tests.support.pipeline.handmade import (
    DUE_MS,
    STORED_MS,
    HandmadeStore,
    copied,
    damage_after_tears,
    overwrite,
    undamaged,
    write_deleted,
)
from tests.support.properties.handmade import golden_dirs, properties_of
from tornpage.pipeline.audit.audit import StoreAudit, audit_plan, audit_store
from tornpage.pipeline.audit.findings import CODES
from tornpage.pipeline.audit.store_rows import bytes_to_read
from tornpage.pipeline.audit.stores import facts_of, plan_store
from tornpage.pipeline.audit.suspicions import Suspicion, judged
from tornpage.pipeline.rows.dispatch import SCHEDULE_TOPIC
from tornpage.properties.inspect import InspectError

QUEUE_FILE = "consumequeue/TopicTest/0/00000000000000000000"
LOG_FILE = "commitlog/00000000000000000000"
TAG = properties_of(("TAGS", "TagA"))


def damages(audited: StoreAudit) -> list[tuple[str, str, int | None, int | None]]:
    return [(f.code, f.file, f.position, f.offset) for f in audited.findings if f.severity == "damage"]


def tree(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(directory)): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in sorted(directory.rglob("*"))
    }


# ---- producer input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [25, 5000])
@pytest.mark.parametrize("name", ["INNER_MULTI_QUEUE_OFFSET", "DELAY"])
def test_numbers_of_thousands_of_digits_are_read_by_nobody(tmp_path: Path, name: str, digits: int) -> None:
    """Java reads none of them, so only the record's own queue has its unit."""
    store = HandmadeStore(tmp_path)
    store.put(properties=properties_of(("INNER_MULTI_DISPATCH", "x"), (name, "9" * digits)))
    audited = audit_store(store.write())
    assert (audited.verdict, audited.figures["records"]) == ("holds", 1)


def test_deleted_topics_below_an_offset_that_no_log_has_are_unreadable(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    body = struct.pack(">8sIQH", b"TPDELTP1", 1, 2**64 - 1, 1) + b"T"
    (store / "config").mkdir(exist_ok=True)
    (store / "config/deletedTopics").write_bytes(body + zlib.crc32(body).to_bytes(4, "big"))
    assert "CFG_DELETED_UNREADABLE" in {finding.code for finding in audit_store(store).findings}


# ---- sound stores ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", undamaged(), ids=lambda path: path.name)
def test_undamaged_store_of_java_has_no_findings(case: Path) -> None:
    before = tree(case / "store")
    audited = audit_store(case / "store")
    assert audited.findings == ()
    assert audited.verdict == "holds"
    assert audited.figures["records"] > 0
    assert audited.figures["units"] > 0
    assert tree(case / "store") == before


@pytest.mark.parametrize("case", [path for path in golden_dirs() if path.name >= "09"], ids=lambda path: path.name)
def test_store_of_java_after_a_crash_has_tears_only(case: Path) -> None:
    findings = audit_store(case / "store").findings
    assert findings
    assert {finding.severity for finding in findings} <= {"tear", "note"}


def test_bytes_that_are_read_are_told_up_to_the_last() -> None:
    store = next(case / "store" for case in undamaged() if case.name.startswith("06"))
    plan = plan_store(0, store)
    told: list[int] = []
    assert audit_plan(plan, told.append) == audit_plan(plan)
    assert told == sorted(told)
    assert told[-1] == bytes_to_read(plan)
    assert len(told) > len(plan.queue_parts) + len(plan.index.readable), "progress counts the log too"


def test_store_without_queues_is_audited_for_the_log_alone(tmp_path: Path) -> None:
    store = HandmadeStore(tmp_path)
    store.put(dispatched=False)
    audited = audit_store(store.write())
    assert [finding.code for finding in audited.findings] == ["CP_MISSING", "CQ_NO_QUEUES"]
    assert audited.verdict == "holds"


def test_lost_queues_of_a_store_that_flushed_some_are_damage(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    for path in sorted((store / "consumequeue").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (store / "consumequeue").rmdir()
    assert damages(audit_store(store)) == [("CQ_NO_QUEUES", "consumequeue", None, None)]


def test_queue_may_begin_with_prefill_units(tmp_path: Path) -> None:
    store = HandmadeStore(tmp_path)
    store.put(queue_offset=23)
    for number in range(20, 23):
        store.unit("T", 0, number, 0, 0x7FFFFFFF)
    assert damages(audit_store(store.write())) == []


def test_units_of_deleted_log_files_are_fine_and_only_at_the_head(tmp_path: Path) -> None:
    store = HandmadeStore(tmp_path, base=8192)
    store.unit("T", 0, 0, 100, 150)
    store.put(queue_offset=1)
    assert damages(audit_store(store.write())) == []
    overwrite(tmp_path / "consumequeue/T/0" / ("0" * 20), 40, struct.pack(">qiq", 300, 150, 0))
    assert [found[0] for found in damages(audit_store(tmp_path))] == ["CQ_POINTS_NOWHERE"]


def test_light_queue_that_begins_anew_is_a_note(tmp_path: Path) -> None:
    store = HandmadeStore(tmp_path)
    kept = [(0, 0), (1, 1), (0, 2), (1, None)]  # offset as stored, unit number; dropped as a repeat after the restart
    for number, (stored, unit) in enumerate(kept):
        names = properties_of(("INNER_MULTI_DISPATCH", "%LMQ%a"), ("INNER_MULTI_QUEUE_OFFSET", str(stored)))
        offset, size = store.put(queue_offset=number, properties=names)
        if unit is not None:
            store.unit("%LMQ%a", 0, unit, offset, size)
    audited = audit_store(store.write())
    assert damages(audited) == []
    assert [f.code for f in audited.findings if f.topic == "%LMQ%a"] == ["CQ_LIGHT_RESTARTED", "CQ_LIGHT_RESTARTED"]


# ---- damage ------------------------------------------------------------------------------------------------------


def test_changed_tags_code_is_found_in_its_place(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    overwrite(store / QUEUE_FILE, 7 * 20 + 19, b"\x00")
    audited = audit_store(store)
    [finding] = [finding for finding in audited.findings if finding.severity == "damage"]
    assert (finding.code, finding.file, finding.position, finding.queue_offset) == (
        "CQ_WRONG_TAGS_CODE",
        QUEUE_FILE,
        140,
        7,
    )
    assert audited.verdict == "broken"


@pytest.mark.parametrize(
    ("unit", "codes"),
    [
        (struct.pack(">qiq", 1 << 40, 100, 0), ["CQ_MISSING", "CQ_POINTS_NOWHERE"]),
        (struct.pack(">qiq", -1, 100, 0), ["CQ_MISSING", "CQ_POINTS_NOWHERE"]),
        (bytes(20), ["CQ_MISSING", "CQ_NOT_CONTIGUOUS"]),
    ],
)
def test_changed_unit_is_found_in_its_place(tmp_path: Path, unit: bytes, codes: list[str]) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    overwrite(store / QUEUE_FILE, 140, unit)
    found = damages(audit_store(store))
    assert [code for code, *_ in found] == codes or [code for code, *_ in reversed(found)] == codes
    assert {(file, position) for _, file, position, _ in found} == {(QUEUE_FILE, 140)}


def test_wrong_size_wrong_queue_duplicate_and_wrong_offset_are_told_apart(tmp_path: Path) -> None:
    store = HandmadeStore(tmp_path)
    own = [store.put(queue_offset=number) for number in range(6)]
    other = store.put("U", 1, 0)
    store.unit("T", 0, 1, own[1][0], own[1][1] + 1)
    store.unit("T", 0, 2, *other)
    store.unit("T", 0, 3, *own[0])
    store.unit("T", 0, 4, *own[5])
    store.unit("T", 0, 5, *own[4])
    found = {(code, position) for code, _, position, _ in damages(audit_store(store.write()))}
    assert found == {
        ("CQ_WRONG_SIZE", 20),
        ("CQ_WRONG_QUEUE", 40),
        ("CQ_MISSING", 40),  # the records of units 2 and 3, which are one finding
        ("CQ_DUPLICATE", 60),
        ("CQ_WRONG_OFFSET", 80),
    }


def test_due_time_of_a_delayed_message_is_judged_by_the_others_of_its_level(tmp_path: Path) -> None:
    store = HandmadeStore(tmp_path)
    for number in range(4):
        due = STORED_MS + DUE_MS + (1 if number == 2 else 0)
        store.put(SCHEDULE_TOPIC, 2, number, properties=properties_of(("DELAY", "3")), tags_code=due)
    assert [found[0:3:2] for found in damages(audit_store(store.write()))] == [("CQ_WRONG_TAGS_CODE", 40)]


@pytest.mark.parametrize("level", ["+3", "0" * 5000 + "3"])
def test_a_level_may_have_a_sign_and_any_number_of_zeros(tmp_path: Path, level: str) -> None:
    store = HandmadeStore(tmp_path)
    store.put(SCHEDULE_TOPIC, 2, properties=properties_of(("DELAY", level)), tags_code=STORED_MS + DUE_MS)
    assert damages(audit_store(store.write())) == []


@pytest.mark.parametrize("name", ["DELAY", "INNER_MULTI_QUEUE_OFFSET"])
def test_a_property_of_thousands_of_digits_is_no_number(tmp_path: Path, name: str) -> None:
    store = HandmadeStore(tmp_path)
    store.put(properties=properties_of(("INNER_MULTI_DISPATCH", "a"), (name, "1" * 5000)))
    assert damages(audit_store(store.write())) == []


def test_address_without_extension_unit_is_damage(tmp_path: Path) -> None:
    store = HandmadeStore(tmp_path)
    store.put(properties=TAG, tags_code=-(2**63) + 28)
    assert [found[0] for found in damages(audit_store(store.write()))] == ["CQ_EXT_UNREADABLE"]
    extension = tmp_path / "consumequeue_ext/T/0"
    extension.mkdir(parents=True)
    (extension / ("0" * 20)).write_bytes(
        (bytes(28) + struct.pack(">hqqh", 20, 2598919, STORED_MS, 0)).ljust(128, b"\0")
    )
    assert damages(audit_store(tmp_path)) == []


def test_zeroed_page_of_the_log_is_found_in_its_place(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    overwrite(store / LOG_FILE, 4096, bytes(4096))
    found = damages(audit_store(store))
    assert {(code, file) for code, file, *_ in found} == {
        ("CL_BAD_RECORD", LOG_FILE),
        ("CQ_POINTS_NOWHERE", QUEUE_FILE),
        ("IX_POINTS_NOWHERE", "index/20261121082633377"),
    }
    at = next(position for code, _, position, _ in found if code == "CL_BAD_RECORD")
    assert at is not None
    assert 4096 - 200 < at <= 4096


def test_cut_log_file_is_found_in_its_place(tmp_path: Path) -> None:
    store = copied("03-rollover-blanks-retention", tmp_path / "store")
    cut = store / "commitlog/00000000000000098304"
    with cut.open("r+b") as file:
        file.truncate(5000)
    found = damages(audit_store(store))
    assert ("CL_SHORT_FILE", "commitlog/00000000000000098304", 0, 98304) in found


def test_cut_and_missing_queue_files_are_found(tmp_path: Path) -> None:
    store = copied("03-rollover-blanks-retention", tmp_path / "store")
    queue = store / "consumequeue/RollTopic/1"
    with (queue / "00000000000000000400").open("r+b") as file:
        file.truncate(201)
    (queue / "00000000000000000800").unlink()
    found = damages(audit_store(store))
    codes = {(code, file.removeprefix("consumequeue/RollTopic/1/")) for code, file, *_ in found}
    assert codes == {
        ("CQ_SHORT_FILE", "00000000000000000400"),
        ("CQ_GAP", "00000000000000001200"),
        ("CQ_MISSING", "00000000000000000400"),
    }


def test_findings_of_a_code_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tornpage.pipeline.audit.suspicions.FINDINGS_MAX", 3)
    store = HandmadeStore(tmp_path)
    for number in range(10):
        store.put(queue_offset=number, tags_code=number % 2)
    codes = [code for code, *_ in damages(audit_store(store.write()))]
    assert sorted(codes) == ["CQ_MORE_FINDINGS", *["CQ_WRONG_TAGS_CODE"] * 3]


@pytest.mark.parametrize("tears", [2, 3, 4, 7])
def test_the_limit_of_findings_hides_no_damage(tears: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a store held, because tears of earlier topics had used up the limit."""
    for module in ("suspicions", "queue_compare"):
        monkeypatch.setattr(f"tornpage.pipeline.audit.{module}.FINDINGS_MAX", 3)
    audited = audit_store(damage_after_tears(tmp_path / "store", tears=tears))
    missing = [finding.severity for finding in audited.findings if finding.code == "CQ_MISSING"]
    assert sorted(missing) == ["damage", *["tear"] * 2]
    assert [finding.severity for finding in audited.findings if finding.code == "CQ_MORE_FINDINGS"] == (
        ["damage"] if tears > 2 else []
    )
    assert audited.verdict == "broken"


# ---- stores at work, and none at all -----------------------------------------------------------------------------

WRITER = """
import select, sys, threading
from tornpage import Message, MessageStore, MessageStoreConfig
config = MessageStoreConfig(
    mapped_file_size_commit_log=16384, flush_interval_commit_log=10**9, flush_interval_consume_queue=10**9
)
arrived = threading.Semaphore(0)
with MessageStore.open(sys.argv[1], config, listeners=[lambda arrival: arrived.release()]) as store:
    for number in range(200):
        store.put(Message("T", b"x" * 100))
    for number in range(200):
        arrived.acquire()
    print("ready", flush=True)
    is_busy = sys.argv[2] == "busy"
    while not select.select([sys.stdin], [], [], 0.0005 if is_busy else None)[0]:
        store.put(Message("T", b"x" * 100))
"""

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX, 1)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def writer(tmp_path: Path, request: pytest.FixtureRequest) -> object:
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", textwrap.dedent(WRITER), str(tmp_path / "live"), request.param],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


@pytest.mark.parametrize("writer", ["idle"], indirect=True)
def test_live_store_is_left_as_it_is_and_unknown(tmp_path: Path, writer: object) -> None:
    before = tree(tmp_path / "live")
    audited = audit_store(tmp_path / "live")
    assert tree(tmp_path / "live") == before
    assert audited.verdict == "unknown"
    assert "CL_TAIL_MOVING" in {finding.code for finding in audited.findings}


@pytest.mark.parametrize("writer", ["busy"], indirect=True)
def test_store_at_work_is_never_called_broken(tmp_path: Path, writer: object) -> None:
    assert {audit_store(tmp_path / "live").verdict for _ in range(10)} == {"unknown"}


def test_units_beyond_the_ends_of_a_live_store_are_left_open(tmp_path: Path) -> None:
    store = HandmadeStore(tmp_path / "store")
    own = [store.put(queue_offset=number) for number in range(3)]
    del store.queues["T", 0][2]  # not dispatched yet
    store.unit("U", 0, 0, own[2][0] + own[2][1], 150)  # appended after the log was read
    root = store.write()
    (root / "lock").write_bytes(b"lock")
    command = [sys.executable, "-c", HOLDER, str(root / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        audited = audit_store(root)
        holder.kill()
    assert audited.verdict == "unknown"
    assert "CQ_TAIL_MOVING" in {finding.code for finding in audited.findings}
    assert {code for code, *_ in damages(audit_store(root))} == {"CQ_MISSING", "CQ_POINTS_NOWHERE"}


def test_what_is_no_store_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "absent", tmp_path / "file", tmp_path / "empty"):
        with pytest.raises(InspectError) as caught:
            audit_store(path)
        assert "\n" not in str(caught.value)


def test_every_code_is_documented_once_and_nothing_else_is(repository: Path) -> None:
    from typing import get_args

    from tornpage.properties.decode.findings import Code

    rows = (repository / "docs" / "findings.md").read_text(encoding="utf-8").splitlines()
    documented = [cells[1].strip(" `") for row in rows if row.startswith("| `") and len(cells := row.split("|")) == 6]
    assert sorted(documented) == sorted({*get_args(Code), *CODES})
    for row in rows:
        if row.startswith("| `"):
            assert all(cell.strip() for cell in row.split("|")[1:-1]), row


def test_unit_of_a_record_that_was_just_being_written_is_looked_at_again(tmp_path: Path) -> None:
    """The log was read before the unit: its record, torn then, is whole by now."""
    store = HandmadeStore(tmp_path / "store")
    own = [store.put(queue_offset=number) for number in range(3)]
    root = store.write()
    (root / "abort").touch()
    (root / "lock").write_bytes(b"lock")
    command = [sys.executable, "-c", HOLDER, str(root / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        plan = plan_store(0, root)
        facts = facts_of(plan, [], [])
        holder.kill()
    assert facts.may_move

    def judged_at(offset: int, queue_offset: int) -> list[str]:
        suspicion = Suspicion(0, "CQ_POINTS_NOWHERE", "T", 0, queue_offset, 1, offset, False, False, False)
        return [finding.code for finding in judged(plan, facts, [suspicion])]

    assert judged_at(own[1][0], 1) == ["CQ_TAIL_MOVING"]
    path = root / "commitlog" / f"{0:020}"
    damaged = bytearray(path.read_bytes())
    damaged[own[1][0] + 90] ^= 1
    path.write_bytes(damaged)
    assert judged_at(own[1][0], 1) == ["CQ_POINTS_NOWHERE"]


# ---- unreadable files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "where", "code"),
    [
        ("03-rollover-blanks-retention", "commitlog", "CL_NO_ACCESS"),
        ("03-rollover-blanks-retention", "consumequeue", "CQ_NO_ACCESS"),
        ("06-index-files-collisions", "index", "IX_NO_ACCESS"),
        ("06-index-files-collisions", "commitlog", "CL_NO_ACCESS"),
    ],
)
def test_a_file_that_may_not_be_read_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, where: str, code: str
) -> None:
    """Its content was called missing. An index file in the middle ended the audit in an error."""
    store = copied(name, tmp_path / "store")
    files = sorted(path for path in (store / where).rglob("*") if path.is_file())
    forbid(monkeypatch, files[len(files) // 2])
    audited = audit_store(store)
    assert (audited.verdict, {finding.code for finding in audited.findings}) == ("unknown", {code})
    if where == "commitlog":
        assert audited.summary is not None
        assert audited.summary.counts["lost"] == 0  # a unit points to each message of that file


@pytest.mark.parametrize(
    ("name", "where", "code"),
    [
        ("03-rollover-blanks-retention", "consumequeue/RollTopic/0", "CQ_NO_ACCESS"),
        ("06-index-files-collisions", "index", "IX_NO_ACCESS"),
    ],
)
def test_a_file_that_may_not_be_looked_at_is_no_damage(tmp_path: Path, name: str, where: str, code: str) -> None:
    path = sorted((copied(name, tmp_path / "store") / where).iterdir())[-1]
    path.unlink()
    path.symlink_to(path)  # no process can follow it, with any rights
    audited = audit_store(tmp_path / "store")
    assert (audited.verdict, {finding.code for finding in audited.findings}) == ("unknown", {code})


def test_a_list_of_deleted_topics_that_may_not_be_read_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    write_deleted(store, {"Other": 0})
    forbid(monkeypatch, store / "config/deletedTopics")
    audited = audit_store(store)
    assert (audited.verdict, {finding.code for finding in audited.findings}) == ("unknown", {"CL_NO_ACCESS"})


def forbid(monkeypatch: pytest.MonkeyPatch, forbidden: Path) -> None:
    """Make every open of a file fail: rights do not stop a test that runs as root."""
    open_one = os.open

    def refuse(path: str | os.PathLike[str], *arguments: int, **options: int) -> int:
        if path == forbidden:
            raise PermissionError(13, "Permission denied", str(path))
        return open_one(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
