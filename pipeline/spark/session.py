"""Start Spark sessions; all settings of Spark are here.

Sessions are quiet (the JVM's standard error goes to a log file in a scratch directory), work offline, and bind loopback
only if the master is on this machine. Workers are forked from a warmed daemon (`pipeline.spark.daemon`) and talk
through Unix-domain sockets. They run this interpreter with safe path and find the project's packages from any
directory. Files of finished tasks survive a killed driver. Its scratch directory does not: a driver holds a lock on a
file in it, and the next session removes directories whose lock is free.

    SparkUnavailable       there can be no session; the message is one line with the remedy
      JavaMissing          no Java, or one that is too old
      PysparkMissing       pyspark, pyarrow or pandas is not installed
      SessionFailed        Java is there, and still no session: a bad master, no memory
      JobFailed            a job of a session failed: a full disk, an executor that died
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import importlib.util
import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage.pipeline.spark.interrupts import interruptible_start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "JAVA_VERSION_MIN",
    "JavaMissing",
    "JobFailed",
    "PysparkMissing",
    "SessionFailed",
    "SparkUnavailable",
    "kept_log",
    "require_java",
    "require_packages",
    "spark_session",
]

JAVA_VERSION_MIN = 17
_MASTER_TIMEOUT_S = 10.0
_ARROW = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Arrow checks bounds and nulls of each value; Spark reads existing rows and checks nulls."""
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_BROADCAST_BYTES = "10485760"
"""Most bytes of a side of a join that Spark copies to all workers, by its rows as computed.

Spark would also do so by the size of Parquet files, before it has read them. A record of an audit has 4 bytes in a file
of Parquet and more than 100 in the map of a join, which then needs more memory than the Java process has.
"""
_LOG = "jvm.log"
_LOCK = "driver.lock"
_PREFIX = "tornpage-spark-"
HOME = str(Path(__file__).absolute().parents[3])
"""Directory that holds the package tornpage, in a checkout and in an installation."""

_REMEDY = "install Java 17 or newer (on Debian and Ubuntu: apt-get install default-jre-headless)"


class SparkUnavailable(RuntimeError):
    """There can be no Spark session; the message is one line with the remedy."""


class JavaMissing(SparkUnavailable):
    """Java is missing or too old."""


class PysparkMissing(SparkUnavailable):
    """A package that sessions need is not installed."""


class SessionFailed(SparkUnavailable):
    """Spark could not start with these settings."""


class JobFailed(SparkUnavailable):
    """A job of Spark failed, for example because a disk was full or an executor died."""


def require_java() -> int:
    """Return the major version of the Java that Spark would run. Raises JavaMissing."""
    home = os.environ.get("JAVA_HOME")
    command = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if command is None:
        raise JavaMissing(f"Spark needs Java, and there is no `java` on the PATH; {_REMEDY}")
    try:
        said = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        where = f"JAVA_HOME is {home}, but" if home else command
        raise JavaMissing(f"Spark needs Java, and {where} does not run ({error}); {_REMEDY}") from error
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if said.returncode or found is None:
        raise JavaMissing(f"Spark needs Java, and {command} does not print its version; {_REMEDY}")
    version = int(found[1])
    if version < JAVA_VERSION_MIN:
        raise JavaMissing(f"Spark needs Java {JAVA_VERSION_MIN}, and {command} is Java {version}; {_REMEDY}")
    return version


def require_packages(*names: str) -> None:
    """Raise PysparkMissing unless these packages are installed."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise PysparkMissing(f"{', '.join(missing)} {verb} not installed; install them with pip: 'tornpage[spark]'")


def spark_session(
    app: str, *, master: str, shuffle_partitions: int = 4, driver_memory: str = "1g", short: bool = False
) -> SparkSession:
    """Return a session, or the one that already runs.

    The caller stops it; it is a context manager. `short` makes JVM and Spark start fast at the cost of slower code,
    which pays for sessions of a minute or less. Raises SparkUnavailable.
    """
    require_packages("pyspark", "pyarrow", "pandas")
    require_java()
    _require_master(master)
    scratch = _scratch_directory()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if re.match(r"local|spark://(localhost|127\.)", master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger", "py4j"):
        # Otherwise each refused query prints a page of JSON, and each interrupt the traceback of a socket.
        logging.getLogger(name).setLevel(logging.CRITICAL)

    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app).master(master)
    for name, value in _settings(master, scratch, shuffle_partitions, driver_memory, short).items():
        builder = builder.config(name, value)
    log = os.path.join(scratch, _LOG)
    _scratch.append(scratch)
    try:
        with _standard_error_to(log), interruptible_start(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _without_remains(_quiet(builder.getOrCreate()), master)
    except Exception as error:
        raise SessionFailed(f"Spark does not start with master {master!r}: {_reason(error, log)}") from error


def _scratch_directory() -> str:
    """Return a new scratch directory, which is removed at the exit of this process.

    Directories of drivers that were killed are removed first. This process holds the lock of its directory until it
    ends, however that happens. Programs that it starts do not inherit the lock.
    """
    _remove_stale()
    path = tempfile.mkdtemp(prefix=_PREFIX)
    unnamed = os.path.join(path, f"{_LOCK}.new")
    lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.rename(unnamed, os.path.join(path, _LOCK))  # the file is locked before it has the name that others look for
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _remove_stale() -> None:
    """Remove the scratch directories that killed drivers of this user have left.

    Directories without a lock file stay: they belong to a driver that is about to make it, or to an earlier version.
    """
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:  # no lock file, another user, or a copy of a log
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except BlockingIOError:  # its driver runs
            continue
        finally:
            os.close(lock)


_scratch: list[str] = []
"""The scratch directories of the sessions of this process, the last one of the running session."""


def kept_log() -> str | None:
    """Copy the log of the Java process to a file that outlives the session; return its path.

    Returns None if nothing was logged, or if the copy cannot be written.
    """
    if not _scratch:
        return None
    log = Path(_scratch[-1]) / _LOG
    try:
        if not log.stat().st_size:
            return None
        descriptor, path = tempfile.mkstemp(prefix=_PREFIX, suffix=".log")
        with os.fdopen(descriptor, "wb") as copy, log.open("rb") as source:
            shutil.copyfileobj(source, copy)
    except OSError:
        return None
    return path


def _without_remains(session: SparkSession, master: str) -> SparkSession:
    """Remove what executors of a `local-cluster` leave in the installation of Spark."""
    from pyspark.find_spark_home import _find_spark_home

    if not master.startswith("local-cluster"):
        return session
    remains, stop = Path(_find_spark_home()) / "work" / session.sparkContext.applicationId, session.stop

    def stop_and_remove() -> None:
        stop()
        shutil.rmtree(remains, ignore_errors=True)

    session.stop = stop_and_remove  # type: ignore[method-assign]
    return session


def _quiet(session: SparkSession) -> SparkSession:
    """Silence the session's own messages about a dead JVM: the next caller gets an error."""
    from tornpage.pipeline.spark.jobs import spark_failures  # it imports code that prints messages of sessions

    server, stop = session.sparkContext._accumulatorServer, session.stop
    others = server.handle_error

    def handle_error(request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], EOFError | OSError):
            others(request, client_address)

    def stop_what_is_left() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                stop()
            except spark_failures():
                with contextlib.suppress(*spark_failures()):
                    stop()  # the rest of it, which is from this module

    server.handle_error = handle_error  # type: ignore[method-assign]
    session.stop = stop_what_is_left  # type: ignore[method-assign]
    return session


def _require_master(master: str) -> None:
    """Raise SessionFailed if no process listens at a standalone master.

    Spark itself would try for minutes.
    """
    places = re.findall(r"([^,/:]+|\[[^]]+\]):([0-9]+)", master) if master.startswith("spark://") else []
    failures = []
    for host, port in places:
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_MASTER_TIMEOUT_S).close()
            return
        except (OSError, OverflowError) as error:
            failures.append(f"{host}:{port}: {getattr(error, 'strerror', None) or error}")
    if failures:
        raise SessionFailed(f"no Spark master answers at {'; '.join(failures)}; start one, or give another --master")


def _settings(master: str, scratch: str, shuffle_partitions: int, driver_memory: str, short: bool) -> dict[str, str]:
    settings = {
        "spark.driver.memory": driver_memory,
        "spark.executorEnv.PYTHONPATH": HOME,
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
        "spark.local.dir": scratch,
        "spark.log.level": "ERROR",
        "spark.python.daemon.module": "tornpage.pipeline.spark.daemon",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.adaptive.autoBroadcastJoinThreshold": _BROADCAST_BYTES,
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(shuffle_partitions),
        "spark.sql.warehouse.dir": os.path.join(scratch, "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    options = [_QUICK] if short else []
    if master.startswith("local"):
        settings["spark.python.unix.domain.socket.dir"] = scratch  # other systems have no such directory
        options.append(_ARROW)
    if options:
        settings["spark.driver.extraJavaOptions"] = " ".join(options)
    if short:
        settings["spark.sql.codegen.wholeStage"] = "false"
    return settings


@contextlib.contextmanager
def _standard_error_to(path: str) -> Iterator[None]:
    """Redirect the standard error of processes started meanwhile to `path`.

    The JVM keeps the descriptor with which it started.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(target, 2)
    os.close(target)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def _reason(error: Exception, log: str) -> str:
    """Return one line: the last error of the JVM's log, or Spark's message."""
    with contextlib.suppress(OSError):
        written = Path(log).read_text(errors="replace").splitlines()
        errors = [line for line in written if re.match(r"\S", line) and re.search(r" ERROR |Exception|^Error", line)]
        if errors:
            return re.sub(r"^.*(?: ERROR \w+|Exception(?: in thread \S+)?): ", "", errors[-1]).strip()[:300]
    said = str(error).strip().splitlines()
    return (said[0] if said else type(error).__name__).strip()[:300]
