"""Test the command line for users: documents, exit codes, one-line errors, no stray files.

A new process costs a second and is used where it matters: for real exit codes, one of each, for hash seeds, pipes,
signals and forks. All other commands are called in this process.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.impl.stores import caught_up
from tornpage import FlushDiskType, Message, MessageStore, MessageStoreConfig
from tornpage.cli.document import Outcome
from tornpage.cli.main import cli
from tornpage.run import directory as run_directory

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "01-plain-ascii"
COMMAND = [sys.executable, "-P", "-m", "tornpage"]
SMALL = MessageStoreConfig(mapped_file_size_commit_log=4096)
FULL = "tornpage: the result was not printed: No space left on device; make room for standard output\n"


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, check=False, env={**os.environ, **(env or {})}
    )


def document_of_a_process(*arguments: str, env: dict[str, str] | None = None) -> tuple[dict[str, Any], int]:
    done = run(*arguments, "--json", env=env)
    assert "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout), done.returncode


def document(*arguments: str) -> tuple[dict[str, Any], int]:
    done = CliRunner().invoke(cli, [*arguments, "--json"])
    assert isinstance(done.exception, SystemExit | None), done.exception
    return json.loads(done.stdout), done.exit_code


def without_timings(said: dict[str, Any]) -> dict[str, Any]:
    figures = {name: figure for name, figure in said["figures"].items() if name not in said["timings"]}
    return {**said, "figures": figures}


def tree(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(directory)): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in sorted(directory.rglob("*"))
    }


def refused(*arguments: str) -> str:
    """Return the message of a mistake: one line, exit code 2, empty standard output."""
    done = CliRunner().invoke(cli, list(arguments))
    return the_line_of(done.exit_code, done.stdout, done.stderr)


def the_line_of(code: int, stdout: str, stderr: str) -> str:
    assert code == 2, (code, stderr)
    assert not stdout
    lines = stderr.strip().splitlines()
    assert len(lines) == 1, stderr
    assert lines[0].startswith("tornpage: ")
    return lines[0]


# ---- documents ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ask", "arguments", "code", "verdict"),
    [
        (document_of_a_process, ("check", "--machine", "commit-log", "--examples", "1"), 3, "vacuous"),
        (document_of_a_process, ("explore", "--bug", "lying-flush", "--failures", "1"), 1, "broken"),
        (document, ("explore", "--disk", "journal", "--states", "300", "--seed", "2"), 0, "holds"),
        (document, ("check", "--machine", "commit-log", "--examples", "40"), 0, "holds"),
        (document, ("check", "--bug", "position-not-checked"), 1, "broken"),
        (document_of_a_process, ("bugs", "list"), 0, None),
        (document_of_a_process, ("doctor",), 0, None),
        (document_of_a_process, ("inspect", str(GOLDEN / "store")), 0, "holds"),
    ],
)
def test_every_command_says_one_document_and_leaves_with_its_code(
    ask: Callable[..., tuple[dict[str, Any], int]], arguments: tuple[str, ...], code: int, verdict: str | None
) -> None:
    said, returned = ask(*arguments)
    assert (said["verdict"], returned) == (verdict, code)
    assert said["schema"] == 1
    assert set(said) >= {"command", "figures", "timings", "findings", "seed", "version"}
    assert set(said["timings"]) <= set(said["figures"])
    assert all(isinstance(figure, (int, float)) for figure in said["figures"].values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [("explore", "--states", "10"), ("check", "--machine", "commit-log", "--examples", "5")]
)
def test_equal_seeds_give_equal_documents_whatever_the_hash_seed(arguments: tuple[str, ...]) -> None:
    first, second = (
        without_timings(document_of_a_process(*arguments, "--seed", "5", env={"PYTHONHASHSEED": value})[0])
        for value in ("1", "77")
    )
    assert first == second


@pytest.mark.slow
def test_other_seeds_give_other_documents() -> None:
    first, second = (
        document("check", "--machine", "commit-log", "--examples", "5", "--seed", seed)[0] for seed in "56"
    )
    assert first["figures"] != second["figures"]


@pytest.mark.slow
def test_a_failure_is_a_token_and_a_file_and_both_replay(tmp_path: Path) -> None:
    said, _ = document("explore", "--bug", "no-erase-after-cut", "--failures", "1", "--out", str(tmp_path / "out"))
    failure = said["findings"][0]
    for ask, case in ((document_of_a_process, failure["token"]), (document, failure["case_file"])):
        again, code = ask("replay", case)
        assert (again["verdict"], code) == ("broken", 1)
        assert again["findings"][0]["sentence"] == failure["sentence"]
    text = CliRunner().invoke(cli, ["replay", failure["token"]]).stdout
    assert "contract 3 is broken" in text
    assert "tornpage replay tp1-" in text


@pytest.mark.slow
def test_a_case_that_no_longer_fails_holds(tmp_path: Path) -> None:
    said, _ = document("explore", "--bug", "lying-flush", "--failures", "1", "--out", str(tmp_path))
    case = Path(said["findings"][0]["case_file"])
    mended = json.loads(case.read_text())
    mended["settings"].pop("bug")
    case.write_text(json.dumps(mended))
    assert document("replay", str(case))[1] == 0


@pytest.mark.slow
def test_real_writers_are_killed(tmp_path: Path) -> None:
    said, code = document_of_a_process("explore", "kills", "30", "--directory", str(tmp_path))
    assert (said["verdict"], code) == ("holds", 0)
    assert said["figures"]["killed"] >= 30
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_real_writers_are_killed_at_a_bytecode_too(tmp_path: Path) -> None:
    said, code = document_of_a_process("explore", "kills", "5", "--kill-at", "bytecode", "--directory", str(tmp_path))
    assert (said["verdict"], code) == ("holds", 0)
    assert said["figures"]["killed"] >= 5


@pytest.mark.deep
def test_a_store_is_restarted_by_fresh_processes(tmp_path: Path) -> None:
    said, code = document_of_a_process("explore", "restarts", "1", "--directory", str(tmp_path))
    assert (said["verdict"], code) == ("holds", 0)
    assert (said["figures"]["refused"], said["figures"]["killed"], said["figures"]["processes"]) == (1, 1, 4)
    assert list(tmp_path.iterdir()) == []


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process. Source: proc(5), utime of /proc/pid/stat."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
def test_an_interrupt_keeps_partial_results_and_leaves_with_130() -> None:
    running = subprocess.Popen(
        [*COMMAND, "explore", "--seconds", "600", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    assert running.stderr.readline().startswith("tornpage explore crashes --seconds 600 --seed 0")
    while cpu_seconds(running.pid) < 4:  # it has begun to explore, however busy the machine is
        assert running.poll() is None
        threading.Event().wait(0.05)
    running.send_signal(signal.SIGINT)
    stdout, stderr = running.communicate(timeout=120)
    assert running.returncode == 130, stderr
    assert json.loads(stdout)["figures"]["states"] > 0
    assert "Traceback" not in stderr


def test_a_closed_pipe_is_no_error() -> None:
    line = " ".join([*COMMAND, "inspect", str(GOLDEN / "store"), "--all"])
    done = subprocess.run(["bash", "-c", f"{line} | head -1"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "Broken" not in done.stderr


def test_a_full_disk_behind_standard_output_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "inspect", str(GOLDEN / "store")], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == FULL


@pytest.mark.parametrize("arguments", [["--help"], ["explore", "--help"], ["--version"]], ids=" ".join)
def test_help_onto_a_full_disk_is_one_line(arguments: list[str]) -> None:
    """It ended in a traceback."""
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == FULL


def test_following_onto_a_full_disk_is_one_line() -> None:
    """It ended in a traceback."""
    follow = [*COMMAND, "inspect", str(GOLDEN / "store"), "--follow"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(follow, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == FULL


@pytest.mark.slow
def test_a_closed_standard_output_is_nobody_who_reads() -> None:
    line = " ".join([*COMMAND, "bugs", "list", ">&-"])
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("audit /proc/nonexistent", 2),
        ("explore --nonsense", 2),
        ("explore --bug lying-flush --failures 1 --workers 1", 1),
        ("explore interleavings --states 20", 3),
        ("exhaust --ops 1 --facts 0 --workers 1", 0),
        ("bugs score gap-accepted --strategy machine --trials 1 --budget 0.1", 3),
    ],
)
def test_who_has_left_standard_error_too_does_not_want_to_know(tmp_path: Path, command: str, code: int) -> None:
    """Some ended in a hidden traceback and with exit code 1, as for a broken guarantee."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *command.split()], stdout=subprocess.DEVNULL, stderr=full, cwd=tmp_path, check=False
        )
    assert done.returncode == code


# ---- inspect -----------------------------------------------------------------------------------------------------


def test_inspect_reads_a_store_of_rocketmq_as_rocketmq_answered() -> None:
    said, _ = document("inspect", str(GOLDEN / "store"), "--all")
    answers = json.loads((GOLDEN / "expected.json").read_text())["steps"][1]["state"]["log"]
    assert [{name: row[name] for name in answer} for row, answer in zip(said["rows"], answers, strict=True)] == answers


def test_inspect_changes_nothing_while_a_writer_is_running(tmp_path: Path) -> None:
    config = MessageStoreConfig(
        mapped_file_size_commit_log=65536,
        max_hash_slot_num=16,
        max_index_num=64,
        mapped_file_size_consume_queue=1200,
        flush_disk_type=FlushDiskType.SYNC_FLUSH,
        flush_interval_consume_queue=10**9,
    )
    with MessageStore.open(tmp_path / "store", config) as store:
        for number in range(20):
            store.put(Message("T", b"x" * 500, properties={"KEYS": f"k{number}"}))
        caught_up(store)
        before = tree(tmp_path / "store")
        said, code = document_of_a_process("inspect", str(tmp_path / "store"), "--all")
        assert tree(tmp_path / "store") == before
        assert store.put(Message("T", b"after")).stored
    assert code in (0, 3)
    assert said["verdict"] in ("holds", "unknown")
    assert len(said["rows"]) == 20


def test_inspect_of_a_damaged_store_is_broken_and_names_the_place(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "store", tmp_path / "store")
    log = tmp_path / "store" / "commitlog" / "00000000000000000000"
    data = bytearray(log.read_bytes())
    data[4096:8192] = bytes(4096)
    log.write_bytes(data)
    before = tree(tmp_path)
    said, code = document("inspect", str(tmp_path / "store"))
    assert (said["verdict"], code) == ("broken", 1)
    assert tree(tmp_path) == before
    finding = next(finding for finding in said["findings"] if finding["severity"] == "damage")
    assert finding["file"].endswith("00000000000000000000")
    assert 3900 < finding["offset"] <= 4096


# ---- mistakes ----------------------------------------------------------------------------------------------------


def test_mistakes_are_answered_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    (tmp_path / "empty").mkdir()
    (tmp_path / "binary").write_bytes(b"\xff\xfe\0")
    assert "/proc/no/such/store" in refused("inspect", "/proc/no/such/store")
    assert "file" in refused("inspect", str(tmp_path / "file"))
    assert "empty" in refused("inspect", str(tmp_path / "empty"))
    assert "token" in refused("replay", "tp1-00000000-garbage")
    assert "case file" in refused("replay", str(tmp_path / "nothing"))
    assert "no text" in refused("replay", str(tmp_path / "binary"))
    assert "JSON" in refused("replay", str(tmp_path / "file"))
    assert "`explore kills`" in refused("explore", "--directory", str(tmp_path))
    assert "`explore kills`" in refused("explore", "--kill-at", "bytecode")
    assert "not with `explore restarts`" in refused("explore", "restarts", "1", "--states", "5")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["binary", "empty", "file"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("explore", "--states", "0"),
        ("explore", "--disk", "tape"),
        ("explore", "--bug", "x"),
        ("dance",),
        ("check", "-q"),
    ],
)
def test_wrong_options_are_usage_errors(arguments: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, list(arguments))
    assert done.exit_code == 2
    assert "Error" in done.stderr


def test_a_mistake_ends_a_process_with_2_and_one_line() -> None:
    done = run("replay", "tp1-00000000-garbage")
    assert "token" in the_line_of(done.returncode, done.stdout, done.stderr)
    done = run("dance")
    assert (done.returncode, "Traceback" in done.stderr, "Error" in done.stderr) == (2, False, True)


@pytest.mark.parametrize("harm", ["cut", "zero length", "foreign file", "directory"])
def test_whatever_lies_in_the_log_directory_inspect_says_so_without_a_traceback(tmp_path: Path, harm: str) -> None:
    shutil.copytree(GOLDEN / "store", tmp_path / "store")
    log = tmp_path / "store" / "commitlog"
    changes: dict[str, Callable[[], object]] = {
        "cut": lambda: os.truncate(log / f"{0:020d}", 5000),
        "zero length": lambda: (log / f"{65536:020d}").write_bytes(b""),
        "foreign file": lambda: (log / "notes.txt").write_text("mine"),
        "directory": lambda: (log / "sub").mkdir(),
    }
    changes[harm]()
    said, code = document("inspect", str(tmp_path / "store"), "--file-bytes", "65536")
    assert said["findings"]
    assert code in (0, 1)


# ---- prove -------------------------------------------------------------------------------------------------------


@pytest.mark.deep
def test_prove_runs_every_step_and_ends_with_a_report_of_that_run(tmp_path: Path) -> None:
    done = run("prove", "--seed", "2", "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    for step in ("kills", "check", "explore", "canary", "write and read", "inspect", "simulate"):
        assert any(line.startswith(step) and " holds " in line for line in lines), (step, done.stdout)
    for step in ("audit", "campaign"):
        assert any(line.startswith(step) and (" holds " in line or " skipped " in line) for line in lines), step
    assert "replayed by token in another process" in done.stdout
    page = Path(lines[-1])
    assert page == tmp_path / "run" / "index.html"
    said = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (said["command"], said["seed"], said["verdict"]) == ("prove", 2, "holds")
    html = page.read_text()
    assert html.count("<svg") >= 5
    assert f"{said['figures']['explore_states']:,}" in html


def test_prove_writes_into_no_directory_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    assert "mine" in refused("prove", "--out", str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_results_that_cannot_be_written_are_said_in_a_line_and_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = Outcome("explore", "holds", {"states": 1})

    def full(path: Path, content: object) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(run_directory, "_write", full)
    run_directory.write_run(run_directory.prepare(str(tmp_path / "run")), outcome)
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert "No space left" in said[0]
    assert outcome.exit_code == 2
