"""Test `tornpage serve` for members of a group: refusals, signals, `ask`."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.impl.nodes import free_address
from tornpage.cli.main import cli
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.parts import Parts
from tornpage.impl.raft.opening import OpenMember
from tornpage.impl.raft.settings import RaftSettings

PATIENCE_S = 60.0
THREE = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--raft-id", "0"], "a member of a group needs --raft-peers"),
        (["--raft-peers", THREE], "a member of a group needs --raft-id"),
        (["--raft-id", "3", "--raft-peers", THREE], "the group has members 0 to 2"),
        (["--raft-id", "0", "--raft-peers", "127.0.0.1:1,127.0.0.1"], "use IP:PORT for each member"),
        (["--raft-id", "0", "--raft-peers", "10.0.0.1:1,127.0.0.1:1"], "allow the network for members"),
        (["--raft-id", "0", "--raft-peers", THREE, "--role", "SLAVE"], "--role is for a master or a slave"),
        (["--raft-id", "0", "--raft-peers", THREE, "--flush", "SYNC_FLUSH"], "--flush is for a master or a slave"),
        (["--raft-id", "0", "--raft-peers", THREE, "--set", "peers=x"], "give --raft-peers instead"),
        (["--raft-messages"], "a member of a group needs --raft-id"),
        (["--raft-id", "0", "--raft-peers", THREE, "--set", "content=messages"], "give --raft-messages instead"),
        (
            ["--raft-id", "0", "--raft-peers", THREE, "--raft-messages", "--set", "slave_timeout=1"],
            "give --set answer_timeout instead",
        ),
        (
            ["--raft-id", "0", "--raft-peers", THREE, "--raft-messages"],
            "has entries, and this member is to have mess",
        ),
        (["--raft-id", "0", "--raft-peers", THREE, "--set", "flush_interval=1"], "no setting of this name"),
        (["--raft-id", "0", "--raft-peers", THREE, "--set", "heartbeat_interval=soon"], "is a number"),
        (["--raft-id", "1", "--raft-peers", THREE], "has the log of member n0, and this is member n1"),
        (["--raft-id", "0", "--raft-peers", THREE], "data_file_bytes is 1073741824; give --set data_file_bytes=8192"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_a_member_is_refused_with_one_line(
    options: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "pthread_sigmask", lambda *_: set())  # the tests go on in this process
    settings = RaftSettings(peers=("127.0.0.1:1",), data_file_bytes=8_192, index_file_bytes=4_096)
    used = OpenMember(str(tmp_path / "used"), 0, settings, files=OsFiles(), parts=Parts())
    used.log.append([])
    used.close()
    (tmp_path / "used" / "dledger-n0" / "data" / f"{0:020d}").write_bytes(bytes(8_192))
    done = CliRunner().invoke(cli, ["serve", str(tmp_path / "used"), *options])
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert sentence in done.stderr


@pytest.mark.slow
def test_a_member_serves_until_a_signal(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "tornpage", "serve", str(tmp_path / "m"), "--json", "--raft-id", "0"]
    command += ["--raft-peers", free_address(), "--set", "data_file_bytes=65536", "--set", "index_file_bytes=4096"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            assert (ready["event"], ready["member"]) == ("ready", 0)
            done = CliRunner().invoke(cli, ["ask", ready["listen"], "append", "body=hello", "--json"])
            answer = json.loads(done.stdout)
            assert (done.exit_code, answer["ok"]) == ((0, True) if answer["ok"] else (2, False))
            done = CliRunner().invoke(cli, ["ask", ready["listen"], "entries", "from=0", "max=9", "--json"])
            assert json.loads(done.stdout)["ok"]
            process.send_signal(signal.SIGUSR1)
            assert json.loads(process.stdout.readline())["member"] == 0
            process.send_signal(signal.SIGTERM)
            assert json.loads(process.stdout.readline())["event"] == "closed"
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
