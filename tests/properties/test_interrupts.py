"""Test interrupts during the start of processes and around temporary directories."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tornpage.properties.interrupts import born_deaf, held_interrupts
from tornpage.properties.scratch import scratch_directory

TELLS = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"


@pytest.fixture(autouse=True)
def _as_in_a_command() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a worker of pytest-xdist ignores it
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_comes_when_all_is_done() -> None:
    done: list[str] = []

    def start() -> None:
        with held_interrupts():
            signal.raise_signal(signal.SIGINT)
            done.append("started")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert done == ["started"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_started_process_never_hears_one() -> None:
    """A Ctrl-C while workers were starting printed a traceback for each of them."""
    with born_deaf():
        told = subprocess.run([sys.executable, "-c", TELLS], capture_output=True, text=True, check=True).stdout
    assert told == "True\n"
    assert subprocess.run([sys.executable, "-c", TELLS], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_forked_process_does_not_unwind_what_its_parent_does() -> None:
    with held_interrupts():
        pid = os.fork()
        if pid == 0:
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except BaseException:
                os._exit(1)
            finally:
                os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_directory_that_was_just_made_is_gone_after_an_interrupt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tempfile.mkdtemp

    def interrupted(prefix: str, dir: str) -> str:
        made = real(prefix=prefix, dir=dir)
        signal.raise_signal(signal.SIGINT)
        return made

    monkeypatch.setattr(tempfile, "mkdtemp", interrupted)
    with pytest.raises(KeyboardInterrupt), scratch_directory("t-", below=str(tmp_path)):
        raise AssertionError("it was interrupted before")
    assert list(tmp_path.iterdir()) == []
