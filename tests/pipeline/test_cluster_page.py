"""Run the commands of docs/cluster.md that need a standalone cluster, with other ports."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.pipeline.test_cluster import first
from tornpage.pipeline.spark.session import SparkUnavailable, require_java, require_packages

pytestmark = pytest.mark.deep

REPOSITORY = Path(__file__).resolve().parents[2]
TEXT = (REPOSITORY / "docs" / "cluster.md").read_text()
BLOCKS = re.findall(r"^```\w*\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
(CLUSTER,) = [block.splitlines() for block in BLOCKS if "master.Master" in block]
(PACKED,) = [block.splitlines() for block in BLOCKS if "tar czf" in block]
READY = {"Master": r"(Starting Spark master) at ", "Worker": r"(Successfully registered) with master"}
LOOPBACK = "127.0.0.1"


@pytest.fixture(scope="module")
def port() -> str:
    """Return a free port in place of 7077; skip where there is no Spark."""
    try:
        require_java()
        require_packages("pyspark", "pyarrow", "pandas")
    except SparkUnavailable as error:
        pytest.skip(str(error))
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        return str(free.getsockname()[1])


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a reader with the environment of these tests."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    kept = {name: os.environ[name] for name in ("JAVA_HOME", "LANG") if name in os.environ}
    return {"PATH": path, "HOME": str(home), "PYTHONPATH": str(REPOSITORY), **kept}


def shell(lines: list[str], home: Path) -> subprocess.Popen[str]:
    """Run lines of the page in one shell, in a new directory."""
    return subprocess.Popen(
        ["bash", "-ec", "\n".join(lines)], cwd=home, env=environment(home), text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


@contextmanager
def terminal(setup: list[str], line: str, home: Path) -> Iterator[None]:
    """Run a daemon of the page while the page continues, as in another terminal."""
    with shell([*setup, f"exec {line}"], home) as daemon:
        try:
            assert daemon.stderr is not None
            first(daemon.stderr, next(pattern for name, pattern in READY.items() if f"{name} --host" in line))
            yield
        finally:
            os.killpg(daemon.pid, signal.SIGTERM)
            daemon.communicate()


@pytest.fixture(scope="module")
def cluster(port: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Start the first processes of a block; yield the rest of the block: the command."""
    home = tmp_path_factory.mktemp("cluster")
    lines = [line.replace("7077", port) for line in CLUSTER]
    setup = [line for line in lines if "=" in line.split()[0] or line.startswith("export ")]
    daemons = [line for line in lines if line.startswith("$CLASS ")]
    assert [*setup, *daemons, lines[-1]] == lines
    assert len(daemons) == len(READY)
    with ExitStack() as stack:
        for line in daemons:
            stack.enter_context(terminal(setup, line, home))
        yield lines[-1:]


def ends_well(lines: list[str], home: Path) -> None:
    with shell(lines, home) as run:
        printed, said = run.communicate()
    assert run.returncode == 0, f"{printed}\n{said}"
    assert printed.endswith("verdict: holds\n")
    assert "in 4 of 4 shards" in printed


def test_a_campaign_on_the_cluster_of_the_page(cluster: list[str], tmp_path: Path) -> None:
    assert shlex.split(cluster[0])[:2] == ["tornpage", "campaign"]
    ends_well(cluster, tmp_path)


def test_a_campaign_with_a_packed_environment(cluster: list[str], port: str, tmp_path: Path) -> None:
    """`.venv` is a small one that uses the packages of this Python.

    The archive of it stays small.
    """
    venv = [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / ".venv")]
    subprocess.run(venv, check=True)
    (site,) = (tmp_path / ".venv" / "lib").glob("python3*/site-packages")
    ran = tmp_path / "ran"
    noted = f"import pathlib; pathlib.Path({str(ran)!r}).touch()"
    (site / "here.pth").write_text(f"{sysconfig.get_path('purelib')}\n{REPOSITORY}\n{noted}\n")
    lines = [line.replace("spark://host:7077", f"spark://{LOOPBACK}:{port}") for line in PACKED]
    assert lines != PACKED
    ends_well(lines, tmp_path)
    assert ran.exists(), "workers ran another Python"
