"""Test Ctrl-C while Spark starts and works: exit code 130, kept results, no process left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from tests.support.pipeline.handmade import copied
from tornpage.pipeline.spark.interrupts import apart, interruptible_start
from tornpage.pipeline.spark.session import SparkUnavailable, require_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAIT_S = 120.0
SWEEP = ("sim", "sweep", "--master", "local[2]", "--messages", "20000")
CAMPAIGN = ("campaign", "--shards", "4", "--states-per-shard", "40", "--seed", "3", "--json")


def test_a_process_that_was_being_started_does_not_outlive_an_interrupt() -> None:
    before = signal.getsignal(signal.SIGINT)
    children: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        with interruptible_start():
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # as a context of PySpark does it
            children.append(subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE))
            raise KeyboardInterrupt

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        with pytest.raises(KeyboardInterrupt):
            start()
        [child] = children
        with child:
            assert not Path(f"/proc/{child.pid}").exists()
        assert other.poll() is None
    assert signal.getsignal(signal.SIGINT) is before


def test_what_was_started_stays_and_the_handler_is_the_one_before() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interruptible_start():
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with child:
        assert child.poll() is None
    assert signal.getsignal(signal.SIGINT) is before


class Session:
    """Stands for a session: its calls wait until it is stopped, and then fail."""

    def __init__(self) -> None:
        self.is_stopped = threading.Event()
        self.ended = False

    def stop(self) -> None:
        self.is_stopped.set()

    def call(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        self.is_stopped.wait(WAIT_S)
        self.ended = True
        raise RuntimeError("the session was stopped")


def test_an_interrupt_stops_the_session_and_is_raised_when_the_calls_have_ended() -> None:
    session = Session()
    with pytest.raises(KeyboardInterrupt):
        apart(cast("SparkSession", session), session.call)
    assert session.ended
    assert apart(cast("SparkSession", session), lambda: 3) == 3


# ---- commands, each in a session of processes of its own ---------------------------------------------------------


@pytest.fixture
def java() -> None:
    try:
        require_java()
    except SparkUnavailable as error:
        pytest.skip(str(error))


class Command:
    """A command and all its descendants."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tornpage", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def running(self) -> list[str]:
        """Return the command lines of the processes that run."""
        found = []
        for directory in Path("/proc").glob("[0-9]*"):
            try:
                state = (directory / "stat").read_text().rpartition(")")[2].split()
                line = (directory / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            if int(state[3]) == self.process.pid and state[0] not in "ZX":
                found.append(line)
        return found

    def wait_for(self, what: str) -> None:
        """Wait for a process with this in its command line, or for this file."""
        deadline = time.monotonic() + WAIT_S
        while not (os.path.exists(what) if os.path.isabs(what) else any(what in line for line in self.running())):
            assert self.process.poll() is None, self.process.communicate()
            assert time.monotonic() < deadline, self.running()

    def interrupt(self) -> tuple[int, str, str]:
        """Press Ctrl-C; return exit code, standard output and error.

        It returns after the end of all processes.
        """
        os.killpg(self.process.pid, signal.SIGINT)
        said, complaint = self.process.communicate(timeout=WAIT_S)
        deadline = time.monotonic() + WAIT_S
        while left := self.running():
            assert time.monotonic() < deadline, left
        return self.process.returncode, said, complaint


@pytest.mark.deep
@pytest.mark.parametrize("moment", ["org.apache.spark.deploy.SparkSubmit", "tornpage.pipeline.spark.daemon"])
@pytest.mark.parametrize("what", ["campaign", "sweep", "audit"])
def test_an_interrupt_leaves_no_process(java: None, tmp_path: Path, what: str, moment: str) -> None:
    store = copied("03-rollover-blanks-retention", tmp_path / "store")
    arguments = {
        "campaign": CAMPAIGN,
        "sweep": SWEEP,
        "audit": ("audit", str(store), "--engine", "joins", "--work", str(tmp_path / "work")),
    }[what]
    command = Command(*arguments)
    command.wait_for(moment)
    code, _, complaint = command.interrupt()
    assert code == 130
    assert complaint.strip() in ("", "interrupted")


@pytest.mark.deep
def test_a_campaign_goes_on_after_an_interrupt_and_ends_as_the_serial_one(java: None, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = Command(*CAMPAIGN, "--out", str(out))
    command.wait_for(str(out / "histories/part-shard-000000.parquet"))
    code, said, complaint = command.interrupt()
    assert (code, complaint) == (130, "interrupted\n")
    assert json.loads(said)["figures"]["shards_complete"] >= 1

    def document(*more: str) -> dict[str, object]:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "tornpage", *CAMPAIGN, *more], capture_output=True, check=False
        )
        found: dict[str, object] = json.loads(done.stdout)
        return found

    resumed = document("--out", str(out), "--resume")
    serial = document("--engine", "serial")
    assert (resumed["result_hash"], resumed["verdict"]) == (serial["result_hash"], serial["verdict"])


@pytest.mark.deep
def test_an_audit_goes_on_after_an_interrupt_with_the_rows_that_are_there(java: None, tmp_path: Path) -> None:
    store = copied("03-rollover-blanks-retention", tmp_path / "store")
    asked = ("audit", str(store), "--engine", "joins", "--work", str(tmp_path / "work"), "--json")
    command = Command(*asked)
    command.wait_for(str(tmp_path / "work/done/00000-log-0000000.json"))
    code, said, complaint = command.interrupt()
    assert (code, said, complaint.strip()) == (130, "", "interrupted")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tornpage", *asked, "--resume"], capture_output=True, check=False
    )
    document = json.loads(done.stdout)
    assert (done.returncode, document["verdict"]) == (0, "holds")
    assert document["figures"]["tasks_done_before"] >= 1
