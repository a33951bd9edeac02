"""Test `tornpage inspect` for users: views, look-ups, following, one-line errors."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.properties.handmade import blank, record
from tornpage.cli.inspect import _VIEWS, command

GOLDEN = Path(__file__).parents[2] / "data" / "golden" / "03-rollover-blanks-retention" / "store"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


def document(*arguments: str) -> tuple[dict[str, Any], int]:
    done = run(*arguments, "--json")
    return json.loads(done.stdout), done.exit_code


def test_the_views_of_the_command_are_those_that_there_are() -> None:
    from tornpage.properties.inspect import VIEWS

    assert _VIEWS == VIEWS


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("log", "--offset", "40000", "--limit", "2"),
        ("queues",),
        ("queue", "RollTopic/0", "--limit", "3"),
        ("queue", "--topic", "RollTopic", "--queue", "1"),
        ("index",),
        ("checkpoint",),
        ("config",),
        ("--id", "0A141E0100002A9F000000000000A000"),
        ("--time", "2000-01-01..2100-01-01T00:00:00+02:00"),
        ("--key", "nothing", "--topic", "RollTopic"),
    ],
)
def test_every_view_says_one_document_and_a_text(arguments: tuple[str, ...]) -> None:
    said, code = document(str(GOLDEN), *arguments)
    assert code == 0
    assert set(said) >= {"schema", "command", "verdict", "figures", "timings", "findings", "seed", "version", "rows"}
    assert all(isinstance(figure, int) for figure in said["figures"].values())
    done = run(str(GOLDEN), *arguments, "--hex")
    assert done.exit_code == 0
    assert "verdict: " in done.stdout or "not judged: " in done.stdout


def test_offsets_and_wide_numbers_are_there_as_text_too() -> None:
    for arguments in (("queues",), ("queue", "RollTopic/0"), ("index",), ()):
        for row in document(str(GOLDEN), *arguments)[0]["rows"]:
            texts = {name for name in row if name.endswith("Text")}
            assert texts
            assert all(row[name] == str(row[name.removesuffix("Text")]) for name in texts)


def test_settings_of_the_broker_say_how_many_slots_there_are(tmp_path: Path) -> None:
    store = tmp_path / "store"
    (store / "commitlog").mkdir(parents=True)
    stored = record(0)
    (store / "commitlog" / f"{0:020}").write_bytes(stored + blank(1024 - len(stored)))
    (store / "index").mkdir()
    # One entry with hash 0 at offset 0: all its bytes are zero, so nothing shows where the slots end.
    header = struct.pack(">qqqqii", 1, 1, 0, 0, 1, 2)
    (store / "index" / "20260101000000000").write_bytes((header + struct.pack(">i", 1)).ljust(40 + 80 + 1000, b"\0"))
    said, code = document(str(store), "index")
    assert (said["verdict"], code, [finding["code"] for finding in said["findings"]]) == (
        "unknown",
        3,
        ["IX_SLOTS_UNKNOWN"],
    )
    settings = tmp_path / "broker.conf"
    settings.write_text("# of a broker\nbrokerName = b\nmaxHashSlotNum = 20\nmappedFileSizeCommitLog=1024\n")
    said, code = document(str(store), "index", "--broker-config", str(settings))
    assert (said["rows"][0]["slots"], code) == (20, 0)
    assert document(str(store), "index", "--slots", "20")[0]["rows"] == said["rows"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("queue",), "TOPIC/ID"),
        (("queue", "Nothing/0"), "no queue"),
        (("--id", "xyz"), "message id"),
        (("--id", "0" * 32, "--key", "k"), "--id"),
        (("--time", "yesterday..today"), "ISO 8601"),
        (("--time", "5..3"), "before it begins"),
        (("--scan",), "--key"),
        (("--broker-config", "/proc/no/such/file"), "/proc/no/such/file"),
        (("queues", "--follow"), "followed"),
        (("--follow", "--id", "0" * 32), "--follow"),
    ],
)
def test_mistakes_are_answered_in_one_line(arguments: tuple[str, ...], words: str) -> None:
    done = run(str(GOLDEN), *arguments)
    assert done.exit_code == 2
    assert not done.stdout
    assert len(done.stderr.strip().splitlines()) == 1
    assert words in done.stderr


@pytest.mark.parametrize("setting", ["maxHashSlotNum=many", "maxHashSlotNum=-1", "mappedFileSizeCommitLog=0"])
def test_settings_that_are_no_numbers_are_refused(tmp_path: Path, setting: str) -> None:
    (tmp_path / "conf").write_text(setting)
    done = run(str(GOLDEN), "index", "--broker-config", str(tmp_path / "conf"))
    assert done.exit_code == 2
    assert setting.partition("=")[0] in done.stderr


def test_text_cannot_steer_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    stored = record(0, topic=b"a\x1b[31mb", properties=b"KEYS\x01\x1b]0;x\x07")
    (tmp_path / "commitlog" / f"{0:020}").write_bytes(stored + blank(1024 - len(stored)))
    for arguments in ((), ("--hex",)):
        assert "\x1b" not in run(str(tmp_path), *arguments).stdout


# ---- following ---------------------------------------------------------------------------------------------------


def growing(tmp_path: Path) -> tuple[Path, Path]:
    store = shutil.copytree(GOLDEN, tmp_path / "store")
    newest = max((store / "commitlog").iterdir())
    newest.chmod(0o644)
    return store, newest


def append(newest: Path, count: int) -> list[int]:
    """Append records after the last one, in place."""
    stored = newest.read_bytes()
    end, base = len(stored.rstrip(b"\0")), int(newest.name)
    offsets: list[int] = []
    with newest.open("r+b") as file:
        for _ in range(count):
            data = record(base + end, b"new", properties=b"KEYS\x01new")
            file.seek(end)
            file.write(data)
            offsets.append(base + end)
            end += len(data)
    return offsets


def following(store: Path, *arguments: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-P", "-m", "tornpage", "inspect", str(store), "--follow", *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_following_prints_rows_as_they_come_and_ends_with_130(tmp_path: Path) -> None:
    store, newest = growing(tmp_path)
    running = following(store)
    assert running.stdout is not None
    assert running.stdout.readline().split()[0] == "offset"
    offsets = append(newest, 3)
    lines = [running.stdout.readline() for _ in range(3)]
    assert [int(line.split()[0]) for line in lines] == offsets
    running.send_signal(signal.SIGINT)
    rest, errors = running.communicate(timeout=30)
    assert running.returncode == 130, errors
    assert "rows 3" in rest
    assert "Traceback" not in errors


def test_followed_as_json_each_row_is_a_line_and_all_together_one_document(tmp_path: Path) -> None:
    store, newest = growing(tmp_path)
    running = following(store, "--json", "--key", "new")
    assert running.stdout is not None
    head = running.stdout.readline()
    offsets = append(newest, 2)
    lines = [running.stdout.readline() for _ in range(2)]
    assert [json.loads(line.lstrip(","))["phy"] for line in lines] == offsets
    running.send_signal(signal.SIGINT)
    rest, errors = running.communicate(timeout=30)
    assert running.returncode == 130, errors
    said = json.loads(head + "".join(lines) + rest)
    assert (said["command"], said["schema"], said["figures"]["rows"]) == ("inspect", 1, 2)
    assert [row["phy"] for row in said["rows"]] == offsets


def test_following_ends_by_itself_after_as_many_rows_as_asked(tmp_path: Path) -> None:
    store, _ = growing(tmp_path)
    running = following(store, "--offset", "0", "--limit", "4", "--json")
    out, errors = running.communicate(timeout=60)
    assert running.returncode == 0, errors
    assert len(json.loads(out)["rows"]) == 4


def test_following_ends_when_its_reader_goes_though_nothing_comes(tmp_path: Path) -> None:
    # Regression: a follower that had written everything before its reader ended waited forever.
    store, _ = growing(tmp_path)
    with following(store) as running:
        assert running.stdout is not None
        assert running.stdout.readline().split()[0] == "offset"
        running.stdout.close()
        assert running.wait(timeout=60) == 0


def test_following_into_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    store, _ = growing(tmp_path)
    line = f"{sys.executable} -P -m tornpage inspect {store} --follow --offset 0 | head -2; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr
