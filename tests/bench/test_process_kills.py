"""Test processes that are killed: kinds of losses, and no process outlives its killer."""

import os
import select
import signal
import struct
import subprocess
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from tornpage.bench.crashes import killed_producer, process_kills
from tornpage.bench.crashes.frontier import FILE_BYTES
from tornpage.bench.crashes.killed_producer import ANSWERED, PAGE_BYTES, PUT, put_until_killed
from tornpage.bench.crashes.process_kills import kill_one
from tornpage.guard import python_command
from tornpage.impl.message.message import PutResult, PutStatus
from tornpage.sim.experiments.policies import POLICIES

LONGER_THAN_ANY_DISK = 1 << 52


def test_a_disk_that_cannot_hold_the_store_is_no_fault_of_the_harness(tmp_path: Path) -> None:
    """A full disk below `sim frontier --directory` gave exit code 4 and a traceback."""
    with pytest.raises(OSError, match=r"^[^\n]*(no space|mapped_file_size_commit_log)[^\n]*$"):
        kill_one(POLICIES["sync"], rate_per_s=1_000.0, file_bytes=LONGER_THAN_ANY_DISK, seed=1, directory=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_had_an_answer_that_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a slow disk a process died before its puts were warm.

    The quantile of no latency ended the command.
    """
    monkeypatch.setattr(process_kills, "LIVES_S", (0.0, 0.0))
    killed = kill_one(POLICIES["sync"], rate_per_s=1_000.0, file_bytes=FILE_BYTES, seed=1, directory=str(tmp_path))
    assert killed.latencies_ns
    assert min(killed.latencies_ns) > 0
    assert killed.loss.messages == 0


class _Stopped(BaseException):
    pass


def test_a_put_that_is_refused_is_not_counted_as_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its message was never in the store, so a kill could not take it.

    It counted as put and answered.
    """
    asked = 0

    def put_async(_: object) -> "Future[PutResult]":
        nonlocal asked
        asked += 1
        if asked > 3:
            raise _Stopped
        answer: Future[PutResult] = Future()
        answer.set_result(PutResult(PutStatus.PUT_OK if asked < 3 else PutStatus.CREATE_MAPEDFILE_FAILED, 0, 1024))
        return answer

    def leaves(status: int) -> None:
        raise _Stopped(status)

    store = SimpleNamespace(put_async=put_async)
    monkeypatch.setattr(killed_producer, "MessageStore", SimpleNamespace(open=lambda *_: store))
    monkeypatch.setattr(os, "_exit", leaves)
    page = tmp_path / "page"
    page.write_bytes(bytes(PAGE_BYTES))
    with pytest.raises(_Stopped) as stopped:
        put_until_killed("/nowhere", "sync", FILE_BYTES, 1e6, 1, str(page))
    assert stopped.value.args == (killed_producer.CANNOT_PUT,)
    assert "CREATE_MAPEDFILE_FAILED" in capfd.readouterr().err
    put, answered = (struct.unpack_from("<q", page.read_bytes(), place)[0] for place in (PUT, ANSWERED))
    assert (put, answered) == (3, 2)


def test_the_moment_a_message_was_meant_for_is_the_one_its_producer_drew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The killer draws the moments again, for the age of the oldest lost message."""
    now_ns = 0
    put_at_ns: list[int] = []

    def clock() -> int:
        nonlocal now_ns
        now_ns += 1_000
        return now_ns

    def nap(seconds: float) -> None:
        nonlocal now_ns
        now_ns += round(seconds * 1e9)

    def put_async(_: object) -> "Future[PutResult]":
        if len(put_at_ns) == 30:
            raise _Stopped
        put_at_ns.append(now_ns)
        return Future()

    monkeypatch.setattr(killed_producer, "perf_counter_ns", clock)
    monkeypatch.setattr(killed_producer, "sleep", nap)
    store = SimpleNamespace(put_async=put_async)
    monkeypatch.setattr(killed_producer, "MessageStore", SimpleNamespace(open=lambda *_: store))
    page = tmp_path / "page"
    page.write_bytes(bytes(PAGE_BYTES))
    with pytest.raises(_Stopped):
        put_until_killed("/nowhere", "sync", FILE_BYTES, 1_000.0, 7, str(page))
    (began_ns,) = struct.unpack_from("<q", page.read_bytes(), killed_producer.BEGAN_NS)
    meant_ns = [process_kills._meant_ns(number, began_ns, 1_000.0, 7) for number in range(30)]
    late_ns = [put - meant for put, meant in zip(put_at_ns, meant_ns, strict=True)]
    assert 0 <= min(late_ns) <= max(late_ns) < 10_000


PARENT = """
import subprocess, sys, time
from tornpage.bench.crashes import process_kills
from tornpage.sim.experiments.policies import POLICIES

class Told(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        print(self.pid, flush=True)

def told(seconds):
    if seconds > 1:
        print("warm", flush=True)
    time.sleep(seconds)

subprocess.Popen, process_kills.sleep, process_kills.LIVES_S = Told, told, (600.0, 600.0)
process_kills.kill_one(POLICIES["async 500 ms"], rate_per_s=100.0, file_bytes=1 << 20, seed=1, directory=sys.argv[1])
"""


def test_who_is_to_be_killed_does_not_outlive_who_wanted_to(tmp_path: Path) -> None:
    """A terminated `sim frontier` left a process that filled the disk for two minutes."""
    command = [*python_command("tornpage.bench.crashes.process_kills")[:-2], "-c", PARENT, str(tmp_path)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    try:
        child = os.pidfd_open(int(parent.stdout.readline()))
        try:
            assert parent.stdout.readline() == "warm\n"
            parent.kill()
            ended, _, _ = select.select([child], [], [], 20.0)
            assert ended, "the process puts on"
        finally:
            end(child)
    finally:
        parent.kill()
        parent.communicate()


def end(child: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(child, signal.SIGKILL)
    os.close(child)
