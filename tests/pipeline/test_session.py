"""Test the error without a Spark session; importing the room needs neither Java nor Spark."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from tornpage.pipeline.spark import session
from tornpage.pipeline.spark.jobs import spark_failures
from tornpage.pipeline.spark.session import JavaMissing, SessionFailed, _quiet, require_java, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def fake_java(directory: Path, version: str) -> Path:
    (directory / "bin").mkdir()
    java = directory / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return directory


def test_missing_java_is_one_sentence_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaMissing, match="default-jre-headless") as caught:
        require_java()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_292"])
def test_old_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, version)))
    with pytest.raises(JavaMissing, match=r"needs Java 17, and .* is Java (11|8); install"):
        require_java()


def test_wrong_java_home_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissing, match="JAVA_HOME is"):
        require_java()


def test_new_java_is_welcome(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, "21.0.1")))
    assert require_java() == 21


@pytest.mark.slow
def test_importing_the_room_loads_neither_spark_nor_arrow() -> None:
    program = (
        "import sys, tornpage.pipeline.audit.audit, tornpage.pipeline.campaign.campaign; "
        "import tornpage.pipeline.spark.session, tornpage.pipeline.sweep.sweep; "
        "import tornpage.cli.audit, tornpage.cli.campaign; "
        "print(sorted({'pyspark', 'py4j', 'pyarrow', 'pandas', 'tornpage.sim'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_master_that_nobody_listens_at_is_one_line_at_once() -> None:
    pytest.importorskip("pyspark")
    try:
        require_java()
    except JavaMissing as error:
        pytest.skip(str(error))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: no other process gets the port
        with pytest.raises(SessionFailed, match=r"no Spark master answers at 127\.0\.0\.1") as caught:
            spark_session("t", master=f"spark://127.0.0.1:{taken.getsockname()[1]}")
    assert "\n" not in str(caught.value)


class Gone:
    """Stands for a session whose Java process has gone.

    The first call of its stop fails, as PySpark's does.
    """

    def __init__(self, errors: list[Exception]) -> None:
        self.told: list[object] = []
        self.stops = 0
        self._errors = errors
        self.sparkContext = SimpleNamespace(_accumulatorServer=SimpleNamespace(handle_error=self._tell))

    def _tell(self, request: object, client_address: object) -> None:
        self.told.append(request)

    def stop(self) -> None:
        self.stops += 1
        if self._errors:
            raise self._errors.pop()


def quiet(*errors: Exception) -> Gone:
    if not spark_failures():
        pytest.skip("pyspark is not installed")
    gone = Gone(list(errors))
    _quiet(cast("SparkSession", gone))
    return gone


def test_the_end_of_a_session_whose_java_has_gone_hides_no_reason() -> None:
    """`audit` ended in the traceback of the stop and not in the line with the reason."""
    gone = quiet(ConnectionRefusedError(111, "Connection refused"))
    gone.stop()
    assert gone.stops == 2  # the rest of the stop needs no Java
    gone = quiet(AssertionError("ours"))
    with pytest.raises(AssertionError):
        gone.stop()


@pytest.mark.parametrize(
    ("error", "is_told"), [(EOFError(), False), (ConnectionResetError(), False), (KeyError(), True)]
)
def test_of_a_closed_socket_spark_says_nothing_by_itself(error: Exception, is_told: bool) -> None:
    gone = quiet()
    try:
        raise error
    except Exception:
        gone.sparkContext._accumulatorServer.handle_error("request", "address")
    assert gone.told == (["request"] if is_told else [])


def test_directories_of_killed_drivers_are_removed_by_the_next_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: the scratch directory of a killed driver stayed, with files of Spark."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    held = (
        "import os, signal, sys, tempfile; tempfile.tempdir = sys.argv[1];"
        "from tornpage.pipeline.spark import session; print(session._scratch_directory(), flush=True); input()"
    )

    def driver() -> tuple[subprocess.Popen[str], Path]:
        started = subprocess.Popen(
            [sys.executable, "-P", "-c", held, str(tmp_path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert started.stdout is not None
        return started, Path(started.stdout.readline().strip())

    killed, left = driver()
    with killed:
        (left / "blockmgr").mkdir()
        killed.kill()
    assert left.is_dir()
    running, used = driver()
    (earlier := tmp_path / "tornpage-spark-earlier").mkdir()
    (log := tmp_path / "tornpage-spark-kept.log").touch()
    with running:
        assert not left.exists()
        mine = Path(session._scratch_directory())
        assert all(path.exists() for path in (mine, used, earlier, log))
        running.communicate("")
    assert not used.exists()
