"""Test campaigns on clusters: own executors, and a standalone master with two workers.

All of them are on the loopback interface.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from tests.support.pipeline.handmade import copied
from tornpage.pipeline.campaign.campaign import rows_of_shard
from tornpage.pipeline.spark.session import SparkUnavailable, require_java, require_packages
from tornpage.properties.explore.crashes.campaign import Plan
from tornpage.properties.explore.crashes.rows import result_hash
from tornpage.properties.program.case import Settings

pytestmark = pytest.mark.deep

STATES = 4
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
LISTENS = "0A"


@pytest.fixture(scope="module")
def serial_hash() -> str:
    """Return the result hash of two small shards; skip where there is no Spark."""
    try:
        require_java()
        require_packages("pyspark", "pyarrow", "pandas")
    except SparkUnavailable as error:
        pytest.skip(str(error))
    shards = Plan(Settings(), seed=3, states=2 * STATES, shard_states=STATES).shards()
    return result_hash(row for shard in shards for row in rows_of_shard(shard))


def campaign_on(master: str, out: Path) -> dict[str, Any]:
    """Run the command as a user would; return its document."""
    asked = ["--shards", "2", "--states-per-shard", str(STATES), "--seed", "3", "--master", master, "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tornpage", "campaign", *asked, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_executors_of_their_own_give_the_serial_rows(serial_hash: str, tmp_path: Path) -> None:
    document = campaign_on("local-cluster[2,1,1024]", tmp_path / "run")
    assert document["result_hash"] == serial_hash
    assert document["figures"]["shards_complete"] == 2


def test_relative_paths_are_read_by_executors_and_leave_nothing(serial_hash: str, tmp_path: Path) -> None:
    """Executors took `store` for a directory of their own, and called an intact store broken."""
    import pyspark

    copied("06-index-files-collisions", tmp_path / "store")
    left = Path(os.environ.get("SPARK_HOME", os.path.dirname(pyspark.__file__))) / "work"
    before = sorted(left.glob("app-*"))
    master = ["--master", "local-cluster[2,1,1024]"]
    command = [sys.executable, "-P", "-m", "tornpage", "audit", "store", *master, "--json"]
    for engine in (["--engine", "tasks"], ["--engine", "joins", "--work", "rows"]):
        done = subprocess.run(
            [*command, *engine],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert (done.returncode, json.loads(done.stdout)["verdict"]) == (0, "holds"), done.stderr
    assert sorted(left.glob("app-*")) == before


def test_a_standalone_cluster_gives_the_serial_rows_and_listens_on_loopback_alone(
    serial_hash: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        master, url = stack.enter_context(daemon("master.Master", r"Starting Spark master at (spark://\S+)"))
        processes = [master]
        for number in range(2):
            place = ["--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / f"worker-{number}"), url]
            worker, _ = stack.enter_context(daemon("worker.Worker", r"(Successfully registered) with master", *place))
            processes.append(worker)
        assert url.startswith("spark://127.0.0.1:")
        assert campaign_on(url, tmp_path / "run")["result_hash"] == serial_hash
        listening = {address for process in processes for address in listening_of(process.pid)}
        assert listening
        assert listening <= LOOPBACK
    assert [process.poll() is not None for process in processes] == [True] * 3


@contextmanager
def daemon(name: str, said: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a process of a standalone cluster on 127.0.0.1; yield it and its first output."""
    import pyspark

    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    command: list[str | Path] = [
        program,
        f"org.apache.spark.deploy.{name}",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--webui-port",
        "0",
    ]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    with subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            yield process, first(process.stderr, said)
        finally:
            process.terminate()
            process.wait()


def first(lines: IO[str], pattern: str) -> str:
    read = []
    for line in lines:
        read.append(line)
        if found := re.search(pattern, line):
            return found[1]
    raise AssertionError("".join(read))


def listening_of(process: int) -> set[str]:
    """Return the addresses on which a process listens, in the kernel's hexadecimal digits."""
    sockets = {os.readlink(link) for link in Path(f"/proc/{process}/fd").iterdir() if link.is_symlink()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            local, state, inode = (line.split()[place] for place in (1, 3, 9))
            if state == LISTENS and f"socket:[{inode}]" in sockets:
                found.add(local.partition(":")[0])
    return found
