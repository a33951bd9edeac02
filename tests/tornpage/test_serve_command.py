"""Test `tornpage serve` as a process, and `tornpage ask`."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.impl.nodes import free_address
from tornpage.cli.main import cli
from tornpage.front import MessageStore
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.message.message import Message
from tornpage.properties.cluster.served_process import NodeProcess
from tornpage.properties.contract import HarnessError
from tornpage.properties.explore.pair.run import run_pair

SMALL = ("--set", "mapped_file_size_commit_log=65536")
PATIENCE_S = 60.0


@contextmanager
def serving(directory: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    command = [sys.executable, "-P", "-m", "tornpage", "serve", str(directory), "--json", *SMALL, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def ask(address: str, *arguments: str) -> tuple[int, Any]:
    done = CliRunner().invoke(cli, ["ask", address, *arguments, "--json"])
    return done.exit_code, json.loads(done.stdout) if done.stdout else done.stderr


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_node_serves_until_a_signal_and_prints_its_status(stop: signal.Signals, tmp_path: Path) -> None:
    with serving(tmp_path / "store", "--ha-listen", "127.0.0.1:0") as (process, ready):
        assert ready["event"] == "ready"
        assert ready["pid"] == process.pid
        code, answer = ask(ready["listen"], "put", "topic=T", "queue=0", "body=hello")
        assert (code, answer["status"]) == (0, "PUT_OK")
        process.send_signal(signal.SIGUSR1)
        assert process.stdout is not None
        status = json.loads(process.stdout.readline())
        assert (status["role"], status["max_offset"] > 0) == ("ASYNC_MASTER", True)
        process.send_signal(stop)
        assert json.loads(process.stdout.readline())["event"] == "closed"
        assert process.wait(PATIENCE_S) == 0
    assert not (tmp_path / "store" / "abort").exists()


@pytest.mark.slow
def test_what_cannot_be_served_is_refused_with_one_line(tmp_path: Path) -> None:
    with serving(tmp_path / "store", "--ha-listen", "127.0.0.1:0") as (_, ready):
        for directory, arguments, sentence in (
            ("store", [], "is in use by another process"),
            ("other", ["--ha-listen", ready["ha_listen"]], f"Address already in use ({ready['ha_listen']})"),
            ("other", ["--role", "SLAVE"], "needs the address of its master"),
            ("new", ["--role", "SLAVE", "--master", "nowhere"], "the address has no port from 0 to 65535 (nowhere)"),
            ("new", ["--set", "in_sync_replicas=0"], "give --in-sync-replicas instead"),
            ("other", ["--set", "nothing=1"], "no setting of this name"),
            ("other", ["--set", "slave_timeout=soon"], "is a number"),
        ):
            command = [sys.executable, "-P", "-m", "tornpage", "serve", str(tmp_path / directory), *SMALL, *arguments]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            assert (done.returncode, done.stdout) == (2, "")
            assert sentence in done.stderr.splitlines()[-1]
    assert not (tmp_path / "new").exists()


def test_a_damaged_store_serves_reads_only_and_says_so(tmp_path: Path) -> None:
    with MessageStore.open(tmp_path / "store", MessageStoreConfig(mapped_file_size_commit_log=65_536)) as store:
        for _ in range(6):
            store.put(Message("T", bytes(30_000), queue_id=0))
    (tmp_path / "store" / "commitlog" / f"{65_536:020d}").unlink()
    with serving(tmp_path / "store", "--ha-listen", "127.0.0.1:0", "--log", "warning") as (process, ready):
        assert ready["ha_listen"] == ""
        code, answer = ask(ready["listen"], "put", "topic=T", "queue=0", "body=hello")
        assert (code, answer["status"]) == (2, "SERVICE_NOT_AVAILABLE")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 2
    lines = [line for line in errors.splitlines() if line.startswith("tornpage: ")]
    assert [line.partition("/")[0] for line in lines] == [
        "tornpage: the store serves reads only: ", "tornpage: the store did not close cleanly: "
    ]  # fmt: skip


def test_requests_that_cannot_be_sent_are_refused(tmp_path: Path) -> None:
    with serving(tmp_path / "store", "--ha-listen", "127.0.0.1:0") as (_, ready):
        for arguments, sentence in (
            (("put", "topic"), "no NAME=VALUE"),
            (("get", "topic=T", "queue=one"), "queue is a whole number"),
        ):
            code, error = ask(ready["listen"], *arguments)
            assert code == 2
            assert sentence in error
        code, answer = ask(ready["listen"], "explode")
        assert code == 2
        assert "no operation" in answer["error"]
    for address in (free_address(), "nowhere", "127.0.0.1:99999"):
        code, error = ask(address, "status")
        assert code == 2
        assert "no answer from" in error


def test_a_node_process_that_cannot_open_is_named(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("no directory")
    with pytest.raises(HarnessError, match="not 'ready'"):
        NodeProcess(tmp_path / "store", "ASYNC_MASTER", "127.0.0.1:0")


@pytest.mark.deep
def test_a_hundred_kills_of_a_pair_lose_no_acknowledged_message() -> None:
    report = run_pair(100, seed=2, directory=None, progress=lambda _: None)
    assert not report.is_vacuous
    assert (report.lost, report.unequal) == ([], "")
    assert report.kills.total() == 100


@pytest.mark.deep
def test_kills_of_an_asynchronous_pair_lose_acknowledged_messages() -> None:
    report = run_pair(20, seed=0, role="ASYNC_MASTER", directory=None, progress=lambda _: None)
    assert report.lost


_KILLED_HOST = """
import os, signal, sys
from pathlib import Path
from tornpage.properties.cluster.served_process import NodeProcess
node = NodeProcess(Path(sys.argv[1]), "ASYNC_MASTER", "127.0.0.1:0")
print(node.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_test_host_leaves_no_node(tmp_path: Path) -> None:
    """Symptom: `tornpage serve` ran on after the kill of `explore pair`.

    Cause: a child outlives its parent. Fix: the node asks for a death signal. Found by: processes an hour old.
    """
    host = subprocess.run(
        [sys.executable, "-P", "-c", _KILLED_HOST, str(tmp_path / "store")], capture_output=True, text=True, timeout=60
    )
    node = os.pidfd_open(int(host.stdout)) if Path("/proc", host.stdout.strip()).exists() else None
    if node is not None:
        ended, _, _ = select.select([node], [], [], PATIENCE_S)
        os.close(node)
        assert ended
