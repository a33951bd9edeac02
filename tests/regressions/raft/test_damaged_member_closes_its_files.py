"""A member that does not open closes the files that it has opened.

Symptom: each refused opening of a damaged member left file descriptors open. A program that tried again had none left.
Cause: neither the log nor the opening of a member closed its files after an exception.
Fix: both close them (impl/raft/raft_log.py, impl/raft/opening.py).
Found by: reading the code.
"""

import os
from pathlib import Path

import pytest

from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.parts import Parts
from tornpage.impl.raft.hard_state import HardStateDamaged
from tornpage.impl.raft.messages import Carried
from tornpage.impl.raft.opening import OpenMember
from tornpage.impl.raft.raft_log import RaftLogDamaged
from tornpage.impl.raft.settings import RaftSettings

SETTINGS = RaftSettings(peers=("127.0.0.1:1",), data_file_bytes=8_192, index_file_bytes=4_096)


def opened(directory: Path) -> OpenMember:
    return OpenMember(str(directory), 0, SETTINGS, files=OsFiles(), parts=Parts())


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    member = opened(tmp_path)
    member.log.append([Carried(1, b"x" * 200)])
    member.log.sync()
    member.hard_state.save(1, 0)
    member.close()
    return tmp_path / "dledger-n0"


def test_damaged_term_leaves_no_file_open(directory: Path) -> None:
    (directory / "currterm").write_text("currTerm=soon\n")
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(HardStateDamaged):
        opened(directory.parent)
    assert len(os.listdir("/proc/self/fd")) == before


def test_damaged_log_leaves_no_file_open(directory: Path) -> None:
    path = directory / "data" / f"{0:020d}"
    path.write_bytes(path.read_bytes().replace(b"xx", b"xy", 1))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(RaftLogDamaged):
        opened(directory.parent)
    assert len(os.listdir("/proc/self/fd")) == before
