"""Test `tornpage judge` for users: documents, exit codes, one-line errors.

The image does not change.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tornpage.cli.judge import command
from tornpage.properties.judge.rulings import NAMES

GOLDEN = Path(__file__).parents[2] / "data" / "golden"
CASE = GOLDEN / "11-crash-stale-queue-tail"
STORE = str(CASE / "store")
FEW = ("--crashes", "2")


def run(*arguments: str) -> Result:
    done = CliRunner().invoke(command, list(arguments))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def document(*arguments: str) -> tuple[dict[str, Any], int]:
    done = run(*arguments, "--json")
    return json.loads(done.stdout), done.exit_code


def refusal(*arguments: str) -> str:
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line


def test_it_says_one_document_with_a_ruling_for_each_number() -> None:
    said, code = document(STORE, *FEW)
    assert (said["command"], said["verdict"], said["seed"], code) == ("judge", "holds", 0, 0)
    assert [(row["number"], row["name"]) for row in said["rulings"]] == list(NAMES.items())
    assert said["mode"] == "read-write"
    assert all(isinstance(figure, int) for figure in said["figures"].values())
    assert said["timings"] == []
    unknown = {row["number"]: row["sentence"] for row in said["rulings"] if row["verdict"] == "unknown"}
    assert "--truth" in unknown[2]
    assert all(unknown.values())
    assert document(STORE, *FEW) == (said, code)


def test_the_text_has_a_line_per_number_and_the_truth_settles_the_floor() -> None:
    done = run(STORE, *FEW, "--truth", str(CASE / "truth.json"))
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:19]] == [str(number) for number in NAMES]
    assert "holds" in lines[2]
    assert lines[-1] == "verdict: holds"
    assert "note: queue_rebuilt consumequeue/StaleCq/1: from number 1 on" in done.stdout


def test_a_planted_bug_is_found_and_the_exit_code_says_so() -> None:
    said, code = document(STORE, *FEW, "--bug", "RMQ-B02")
    assert (said["verdict"], code) == ("broken", 1)
    (finding, *_) = [each for each in said["findings"] if each["code"] == "contract-4"]
    assert (finding["severity"], finding["file"]) == ("broken", f"consumequeue/StaleCq/1/{0:020d}")
    assert "verdict: broken" in run(STORE, *FEW, "--bug", "RMQ-B02").stdout


def test_the_image_stays_as_it_is(tmp_path: Path) -> None:
    copy = tmp_path / "store"
    shutil.copytree(STORE, copy)
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in copy.rglob("*") if path.is_file()}
    assert run(str(copy), *FEW).exit_code == 0
    assert before == {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in copy.rglob("*") if path.is_file()}


def test_a_run_directory_gets_the_rulings(tmp_path: Path) -> None:
    said, code = document(STORE, *FEW, "--out", str(tmp_path / "out"))
    assert code == 0
    table = json.loads((tmp_path / "out" / "tables" / "rulings.json").read_text())
    assert table["rows"] == said["rulings"]
    assert table["caption"]["command"] == f"tornpage judge {STORE} --seed 0"


def test_golden_stores_give_a_row_each(tmp_path: Path) -> None:
    said, code = document(str(CASE), "--golden", *FEW, "--out", str(tmp_path / "out"))
    assert (said["verdict"], code) == ("holds", 0)
    (row,) = said["images"]
    assert (row["image"], row["told"], row["rocketmq_kept"], row["kept"]) == (CASE.name, 4, 1, 1)
    assert (row["rocketmq_broken"], row["broken"]) == ([4], [])
    assert json.loads((tmp_path / "out" / "tables" / "crash_images.json").read_text())["rows"] == said["images"]
    said, code = document(str(CASE), "--golden", *FEW, "--bug", "RMQ-B02")
    assert (said["verdict"], code) == ("broken", 1)
    assert {finding["image"] for finding in said["findings"]} == {CASE.name}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("/proc/no/such/image",), "no such directory"),
        ((str(CASE),), "not a store directory"),
        ((str(CASE / "truth.json"),), "not a directory"),
        ((STORE, "--truth", "/proc/no/such/truth"), "cannot read the truth"),
        ((STORE, "--truth", str(CASE / "store" / "checkpoint")), "is not a truth"),
        ((STORE, "--broker-config", "/proc/no/such/config"), "cannot read the broker's settings"),
        ((STORE, "--file-bytes", "3"), "no store can have these sizes"),
        ((STORE, "--file-bytes", "4096"), "leave the size out"),
        ((STORE, "--exit", "kill"), "--truth"),
        ((STORE, "--golden"), "no crash image"),
        ((str(GOLDEN), "--golden", "--slots", "3"), "--golden without"),
        ((str(GOLDEN / "01-plain-ascii"), "--golden"), "no crash image"),
    ],
)
def test_what_cannot_be_judged_is_one_line(arguments: tuple[str, ...], words: str) -> None:
    assert words in refusal(*arguments)


def test_settings_come_from_the_broker(tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text("mappedFileSizeConsumeQueue=5120\nmaxHashSlotNum=1000\nbrokerName=a\n")
    assert document(STORE, *FEW, "--broker-config", str(tmp_path / "broker.conf"))[1] == 0
    (tmp_path / "broker.conf").write_text("maxHashSlotNum=many\n")
    assert "it has to be a whole number" in refusal(STORE, "--broker-config", str(tmp_path / "broker.conf"))
    (tmp_path / "broker.conf").write_text("enableLmq=perhaps\n")
    assert "it has to be true or false" in refusal(STORE, "--broker-config", str(tmp_path / "broker.conf"))


def test_an_open_store_is_not_judged(tmp_path: Path) -> None:
    from tornpage import MessageStore, MessageStoreConfig

    with MessageStore.open(tmp_path / "store", MessageStoreConfig(mapped_file_size_commit_log=4096)):
        assert "is open in a store" in refusal(str(tmp_path / "store"))
        assert "open" in refusal(str(tmp_path / "store"))


def test_it_is_among_the_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tornpage", "judge", "--help"], capture_output=True, text=True, check=True
    )
    assert "IMAGE_DIR" in done.stdout
    assert done.stderr == ""
