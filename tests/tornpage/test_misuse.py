"""Misuse is one line and exit code 2: settings, sizes, places to write to, misspelt names."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.pipeline.handmade import copied
from tests.support.properties.handmade import golden_dirs
from tornpage.cli.main import cli
from tornpage.outcomes.doctor import examine

STORE = str(next(path for path in golden_dirs() if path.name == "03-rollover-blanks-retention") / "store")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="tornpage")


def refused(*arguments: str) -> str:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    lines = [line for line in done.stderr.strip().splitlines() if line]
    assert len(lines) == 1
    return lines[0]


@pytest.mark.parametrize("command", ["audit", "inspect", "judge"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x00\xff\xfe\x01garbage", "line 1 is no name=value"),
        (b"flushDiskType=NOPE\n", "it has to be ASYNC_FLUSH or SYNC_FLUSH"),
        (b"noSuchThing=1\n", "unknown broker setting 'noSuchThing'"),
        (b"maxHashSlotNumm=100\n", "did you mean maxHashSlotNum"),
    ],
)
def test_settings_that_no_broker_reads_are_refused(tmp_path: Path, command: str, content: bytes, said: str) -> None:
    path = tmp_path / "broker.conf"
    path.write_bytes(content)
    assert said in refused(command, STORE, "--broker-config", str(path))


@pytest.mark.parametrize("command", ["audit", "inspect"])
@pytest.mark.parametrize("size", ["100", "8192", "65536"])
def test_size_that_no_log_file_can_have_is_misuse(command: str, size: str) -> None:
    assert "no log file of this store can have" in refused(command, STORE, "--file-bytes", size)


@pytest.mark.parametrize("command", ["audit", "inspect", "judge"])
def test_size_beyond_all_files_is_misuse(command: str) -> None:
    assert run(command, STORE, "--file-bytes", str(10**20)).exit_code == 2


@pytest.mark.parametrize("command", ["audit", "inspect"])
def test_page_never_replaces_a_foreign_file_or_lies_in_a_store(tmp_path: Path, command: str) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    mine = tmp_path / "notes.html"
    mine.write_text("mine")
    assert "give --overwrite" in refused(command, str(store), "--html", str(mine))
    assert mine.read_text() == "mine"
    assert "lies in the store directory" in refused(command, str(store), "--html", str(store / "page.html"))
    page = tmp_path / "page.html"
    for _ in range(2):  # the second time it replaces a page of its own
        assert run(command, str(store), "--html", str(page)).exit_code == 0
    assert run(command, str(store), "--html", str(mine), "--overwrite").exit_code == 0
    assert mine.read_text() != "mine"


@pytest.mark.parametrize(
    "arguments",
    [
        ("sim", "sweep", "--rate", "1000", "--messages", "100"),
        ("explore", "crashes", "--states", "1"),
        ("judge", STORE),
        ("campaign", "--shards", "1"),
    ],
)
def test_results_never_go_into_a_store(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    before = sorted(store.rglob("*"))
    assert "lies in the store directory" in refused(*arguments, "--out", str(store))
    assert "lies in the store directory" in refused(*arguments, "--out", str(store / "out"))
    assert sorted(store.rglob("*")) == before


def test_calibration_never_goes_into_a_store(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    out = str(store / "disk.calibration")
    assert "lies in the store directory" in refused("sim", "calibrate", str(tmp_path), "--out", out)


def test_sweep_never_writes_beside_foreign_files(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes").touch()
    assert "holds notes" in refused(
        "sim", "sweep", "--rate", "1000", "--messages", "100", "--out", str(tmp_path / "out")
    )


def test_misspelt_command_and_code_in_small_letters() -> None:
    assert "Did you mean explore" in run("expplore").stderr
    assert json.loads(run("explain", "cl_bad_record", "--json").stdout)["code"] == "CL_BAD_RECORD"


def test_truth_that_is_no_text_is_refused_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "truth").write_bytes(b"\xfa\xfb")
    said = refused("judge", STORE, "--truth", str(tmp_path / "truth"))
    assert "is not a truth file: it is no JSON text" in said
    assert "codec" not in said


def test_doctor_names_a_directory_that_does_not_exist(tmp_path: Path) -> None:
    [check] = [each for each in examine(str(tmp_path / "no" / "such")) if each.name == "disk space"]
    assert (check.state, "is no directory" in check.detail) == ("limited", True)


@pytest.mark.parametrize("verb", [("kills", "5"), ("restarts", "2")])
def test_nearly_full_disk_is_no_broken_store(
    tmp_path: Path, verb: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store without room was once called broken, or ended in a traceback of a process below."""
    full = shutil.disk_usage(tmp_path)._replace(free=100_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    assert "100,000 bytes free" in refused("explore", *verb, "--directory", str(tmp_path))
