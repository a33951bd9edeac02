"""Inspection of damaged stores, closed directories and unexpected questions.

Symptom: look-ups by time and key missed records without a finding. Figures depended on `--limit`. A note denied records
that had not been asked for. Names that are no UTF-8, very long numbers, and directories that may be listed but not
entered ended in tracebacks.
Cause: a log file with a zeroed first page counted as unused. The header of an index file was trusted where its entries
contradict it. A hidden row was not counted. The name of an extension's topic was used as a path.
Fix: a file without a first record lies between its neighbours. An index answers for the range in which header and
entries agree. The listing is compared with the question.
"""

import json
import os
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.properties.handmade import DATA, blank, record
from tornpage.cli.inspect import command
from tornpage.properties.inspect import InspectError, Query, inspect_view

GOLDEN = DATA / "golden"
FILE_BYTES = 8192


def copied(name: str, directory: Path) -> Path:
    store = shutil.copytree(GOLDEN / name / "store", directory / "store")
    for each in (store, *store.rglob("*")):
        each.chmod(0o755)
    return store


def log_of(directory: Path, stored: Sequence[tuple[int, int]]) -> None:
    """Write a full log file for each (position, time).

    It has one record there, zeros before it and an end mark after it.
    """
    (directory / "commitlog").mkdir()
    for number, (position, time) in enumerate(stored):
        content = bytes(position) + record(number * FILE_BYTES + position, store_timestamp=time)
        content += blank(FILE_BYTES - len(content))
        (directory / "commitlog" / f"{number * FILE_BYTES:020}").write_bytes(content)


@pytest.mark.parametrize("torn", [0, 1, 2])
def test_a_file_that_lost_its_first_page_is_searched_by_time(tmp_path: Path, torn: int) -> None:
    log_of(tmp_path, [(4096 if number == torn else 0, 1000 * number) for number in range(3)])
    for number in range(3):
        asked = Query(times=(1000 * number, 1000 * number))
        document = inspect_view(tmp_path, "log", None, asked)
        assert [row["storeTimestamp"] for row in document["rows"] if row["kind"] == "record"] == [1000 * number]
        assert "LOOK_SCANNED" not in [finding["code"] for finding in document["findings"]]


@pytest.mark.slow
@pytest.mark.parametrize("field", ["begin offset", "end offset"])
def test_an_index_answers_only_for_what_its_entries_bear_out(tmp_path: Path, field: str) -> None:
    """The index file in the middle is gone, and a header beside it claims that range too."""
    store = copied("06-index-files-collisions", tmp_path)
    first, *others = sorted((store / "index").iterdir())
    assert len(others) >= 2
    others[0].unlink()
    with (first if field == "end offset" else others[1]).open("r+b") as file:
        file.seek(24 if field == "end offset" else 16)
        file.write(struct.pack(">q", 2**62 if field == "end offset" else 0))
    settings = json.loads((GOLDEN / "06-index-files-collisions" / "config.json").read_text())
    slots = settings["store"]["maxHashSlotNum"]
    asked = {"limit": None, "topic": "IdxA", "slots": slots}
    for row in inspect_view(store, "log", None, Query(limit=None, topic="IdxA"))["rows"]:
        for key in (row["keys"] or "").split():
            found = inspect_view(store, "log", None, Query(key=key, **asked))
            assert row["phy"] in [each["phy"] for each in found["rows"]]


def test_figures_of_the_index_do_not_depend_on_the_limit(tmp_path: Path) -> None:
    store = copied("03-rollover-blanks-retention", tmp_path)
    every, none = (inspect_view(store, "index", None, Query(limit=limit))["figures"] for limit in (None, 0))
    assert every["index_files"] == none["index_files"] == 4
    assert every["index_entries"] == none["index_entries"]


def test_a_filter_that_fits_nothing_denies_no_record(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path)
    asked = Query(offset=0, topic="NoSuchTopic")
    [finding] = inspect_view(store, "log", None, asked)["findings"]
    assert finding["message"].startswith("no matching record at or after offset 0;")


@pytest.mark.parametrize("what", ["T/" + "1" * 5_000, "\udcff/0", "/etc/0", "../T/0", "T\0/0"])
@pytest.mark.parametrize("view", ["queue", "ext"])
def test_a_queue_that_is_none_is_refused_in_one_line(tmp_path: Path, view: str, what: str) -> None:
    store = copied("07-queue-ext-bitmaps", tmp_path)
    with pytest.raises(InspectError) as refused:
        inspect_view(store, view, what, Query())
    assert str(refused.value).count("\n") == 0
    assert len(str(refused.value)) < 500


def test_a_queue_of_a_negative_number_can_be_asked_for(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path)
    queue = next((store / "consumequeue").glob("*/0"))
    queue.rename(queue.with_name("-1"))
    assert inspect_view(store, "queue", f"{queue.parent.name}/-1", Query())["figures"]["units"]


def test_a_directory_that_may_not_be_entered_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = copied("01-plain-ascii", tmp_path)
    is_dir = Path.is_dir

    def closed(path: Path) -> bool:
        if path.parent.name == "consumequeue":
            raise PermissionError(13, "Permission denied", str(path))
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", closed)
    for view in ("queues", "groups"):
        document = inspect_view(store, view, None, Query())
        assert document["verdict"] == "unknown"
        assert "CQ_NO_ACCESS" in [finding["code"] for finding in document["findings"]]


def test_an_index_file_that_the_disk_does_not_give_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only its first 4,096 bytes are read: the header, the slots, and an entry or two."""
    store = copied("01-plain-ascii", tmp_path)
    [path] = (store / "index").iterdir()
    [row] = inspect_view(store, "index", None, Query())["rows"]
    slots, pread = row["slots"], os.pread
    newest = inspect_view(store, "index", path.name, Query(limit=None))["rows"][-1]

    def failing(fd: int, size_bytes: int, position: int) -> bytes:
        if path.name in os.readlink(f"/proc/self/fd/{fd}") and position + size_bytes > 4096:
            raise OSError(5, "Input/output error")
        return pread(fd, size_bytes, position)

    monkeypatch.setattr(os, "pread", failing)
    for name, query in (
        (None, Query(slots=slots)),
        (path.name, Query(slots=slots)),
        (None, Query(slots=slots, topic=newest["topic"], key=newest["keys"][0])),
    ):
        document = inspect_view(store, "index", name, query)
        found = [(finding["code"], finding["file"]) for finding in document["findings"]]
        assert ("IX_NO_ACCESS", f"index/{path.name}") in found
        assert document["verdict"] == "unknown"


@pytest.mark.parametrize("option", ["--topic", "--queue", "--tag"])
def test_a_filter_beside_an_id_is_refused_and_not_ignored(tmp_path: Path, option: str) -> None:
    store = copied("01-plain-ascii", tmp_path)
    done = CliRunner().invoke(command, [str(store), "--id", "0" * 32, option, "1"])
    assert done.exit_code == 2
    assert "--id without" in done.output
