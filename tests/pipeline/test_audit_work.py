"""Test tasks that write rows: done once, repeated only after a change, and never half."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from tests.support.pipeline.handmade import copied, overwrite, write_deleted
from tornpage.pipeline.audit.audit_spark import _in_tasks, _one_line, audit_each
from tornpage.pipeline.audit.store_rows import read_store
from tornpage.pipeline.audit.stores import StorePlan, plan_store
from tornpage.pipeline.audit.work import WorkError, do_task, open_work, outlines, plan_tasks
from tornpage.pipeline.rows.index_reading import IndexPartition
from tornpage.pipeline.rows.parquet_rows import TABLES
from tornpage.pipeline.spark.agreement import PathUnseen, VersionsDiffer
from tornpage.pipeline.spark.jobs import reason_of
from tornpage.pipeline.spark.session import JobFailed

pq = pytest.importorskip("pyarrow.parquet")


def test_task_is_done_once_and_again_when_a_file_changed(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    plan = plan_store(0, store)
    tasks = plan_tasks(plan)
    open_work(tmp_path / "work", [plan], resume=False, overwrite=False)
    assert [do_task(task, tmp_path / "work") for task in tasks] == [True, True, True]
    assert [do_task(task, tmp_path / "work") for task in tasks] == [False, False, False]
    overwrite(store / "consumequeue/TopicTest/0" / ("0" * 20), 12, b"\x05")
    assert [do_task(task, tmp_path / "work") for task in tasks] == [False, True, False]
    assert pq.read_table(tmp_path / "work/units").num_rows == 60
    assert sum(row.items for row in outlines(tmp_path / "work", tasks)[0].log if row.kind == "run") == 60


def test_task_that_dies_leaves_nothing_that_looks_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_store(0, copied("01-plain-ascii", tmp_path / "store"))
    task = plan_tasks(plan)[0]
    open_work(tmp_path / "work", [plan], resume=False, overwrite=False)

    def fails(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tornpage.pipeline.audit.work.plain_batch", fails)
        with pytest.raises(OSError, match="No space"):
            do_task(task, tmp_path / "work")
    assert [path for path in (tmp_path / "work").rglob("*") if path.is_file() and path.name != "stores.json"] == []
    assert do_task(task, tmp_path / "work")


def test_marker_of_a_task_speaks_of_the_files_as_they_were_before(tmp_path: Path) -> None:
    """A file that changes while it is read is read again by the next audit."""
    store = copied("01-plain-ascii", tmp_path / "store")
    plan = plan_store(0, store)
    task = plan_tasks(plan)[0]
    open_work(tmp_path / "work", [plan], resume=False, overwrite=False)
    before = task.fingerprint()
    do_task(task, tmp_path / "work")
    assert json.loads((tmp_path / "work/done" / f"{task.name}.json").read_text())["files"] == before


class OneWorker:
    """Runs in this process what Spark would run in its workers with a function of partitions."""

    def __init__(self) -> None:
        self.sparkContext = self

    def broadcast(self, value: Any) -> Any:
        return type("Value", (), {"value": value})

    def parallelize(self, numbers: range, _: int) -> OneWorker:
        self._numbers = numbers
        return self

    def mapPartitions(self, run: Any) -> OneWorker:  # noqa: N802
        self._answers = list(run(iter(self._numbers)))
        return self

    def collect(self) -> list[Any]:
        return self._answers


def test_worker_of_another_version_does_nothing_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _in_tasks(OneWorker(), [1, 2], lambda task: task + 1) == [2, 3]  # type: ignore[arg-type]
    told = iter([{"numpy": "2.4"}, {"numpy": "1.0"}, {"numpy": "1.0"}])
    monkeypatch.setattr("tornpage.pipeline.audit.audit_spark.versions", lambda: next(told))
    with pytest.raises(VersionsDiffer, match=r"other versions: numpy 1.0, here 2.4; install there") as caught:
        _in_tasks(OneWorker(), [1, 2], lambda task: pytest.fail(f"did {task}"))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("said", "kind", "part"),
    [
        (
            "Traceback\n  x\nPySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker",
            VersionsDiffer,
            "PYSPARK_PYTHON",
        ),
        ("Traceback\nModuleNotFoundError: No module named 'pipeline'\n at x", VersionsDiffer, "no module pipeline"),
        ("org.x.SparkException: Job aborted\nTraceback\nOSError: [Errno 28] No space left", JobFailed, "No space left"),
    ],
)
def test_failed_job_is_one_line(said: str, kind: type[Exception], part: str) -> None:
    error = _one_line(RuntimeError(said))
    assert type(error) is kind
    assert part in str(error)
    assert "\n" not in str(error)


def test_a_java_process_that_has_gone_is_one_line() -> None:
    """It ended in a traceback, because the error of the call is none of PySpark's."""
    broadcast = Mock(side_effect=ConnectionRefusedError(111, "Connection refused"))
    spark = Mock(sparkContext=Mock(broadcast=broadcast))
    with pytest.raises(JobFailed, match="the Java process of Spark has ended"):
        audit_each(spark, [Mock()])


def test_worker_that_does_not_see_a_directory_reads_nothing(tmp_path: Path) -> None:
    """An intact store was broken for a worker with another working directory."""
    read = Mock()
    with pytest.raises(PathUnseen, match="does not see the directory"):
        _in_tasks(OneWorker(), [1], read, [tmp_path / "gone"])  # type: ignore[arg-type]
    read.assert_not_called()


def test_plan_of_a_relative_path_has_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied("01-plain-ascii", tmp_path / "store")
    monkeypatch.chdir(tmp_path)
    plan = plan_store(0, "store")
    assert plan.name == "store"
    paths = [part.file.path if isinstance(part, IndexPartition) else part.path for part in parts_of(plan)]
    assert len(paths) >= 3
    assert [path for path in paths if not path.is_absolute()] == []


def parts_of(plan: StorePlan) -> list[Any]:
    return [part for task in plan_tasks(plan) for part in task.parts]


def test_log_of_the_java_process_outlives_the_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log with the only trace of a failed job was removed at exit."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tornpage.pipeline.spark.session._scratch", [str(scratch)])
    error = RuntimeError("java.io.IOException: no room")
    assert str(_one_line(error)).startswith("the job failed: java.io.IOException: no room; with --work")
    (scratch / "jvm.log").write_text("ERROR TaskSetManager: java.io.IOException: no room\n")
    shown = str(_one_line(error))
    kept = Path(shown.partition("the log of Spark's Java process is ")[2].partition(";")[0])
    assert kept.parent == tmp_path
    assert kept.read_text() == "ERROR TaskSetManager: java.io.IOException: no room\n"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "the Java process of Spark has ended or does not answer"),
        (
            RuntimeError("An error occurred\norg.x.SparkException: y\nCaused by: java.io.IOException: no room\n"),
            "java.io",
        ),
        (RuntimeError(""), "RuntimeError"),
        (
            RuntimeError(
                "An error occurred while calling o4526.collectToPython.\n"
                ": org.apache.spark.SparkException: Exception thrown in awaitResult: \n\tat org.x.Y(Y.java:1)\n"
                "Caused by: org.apache.spark.SparkException: Not enough memory to build and broadcast the table\n"
            ),
            "org.apache.spark.SparkException: Not enough memory",
        ),
        (
            RuntimeError(
                "An error occurred while calling o1.collectToPython.\n"
                ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 lost, Reason: heartbeat\n"
            ),
            "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 lost, Reason: heartbeat",
        ),
    ],
)
def test_the_reason_of_a_failure_is_one_line(error: Exception, reason: str) -> None:
    assert reason_of(error).startswith(reason)
    assert "\n" not in reason_of(error)


@pytest.mark.parametrize(
    ("program", "how"),
    [
        ("kill -KILL $$", "was killed by SIGKILL, as the kernel does without memory"),
        ("kill -TERM $$", "was killed by signal 15"),
        ("exit 3", "ended with code 3"),
    ],
)
@pytest.mark.parametrize("name", ["ConnectionRefusedError", "Py4JNetworkError", "Py4JError"])
def test_the_reason_of_a_lost_java_process_says_how_it_ended(
    name: str, program: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: a killed Java process was a call that failed, or one that does not answer."""
    pyspark, protocol = pytest.importorskip("pyspark"), pytest.importorskip("py4j.protocol")
    error = {"ConnectionRefusedError": ConnectionRefusedError}.get(name) or getattr(protocol, name)
    with subprocess.Popen(["sh", "-c", program]) as java:
        monkeypatch.setattr(pyspark.SparkContext, "_gateway", SimpleNamespace(proc=java))
        reason = reason_of(error("An error occurred while calling o59.collectToPython"))
    assert reason == f"the Java process of Spark {how} ({name})"


def test_the_reason_of_a_java_process_that_runs_is_not_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    pyspark, protocol = pytest.importorskip("pyspark"), pytest.importorskip("py4j.protocol")
    monkeypatch.setattr("tornpage.pipeline.spark.jobs._END_S", 0.0)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as java:
        monkeypatch.setattr(pyspark.SparkContext, "_gateway", SimpleNamespace(proc=java))
        reason = reason_of(ConnectionResetError())
        of_java = reason_of(protocol.Py4JError("An error occurred while calling o5.range. Trace:\nno such method\n"))
        java.communicate()
    assert reason == "the Java process of Spark has ended or does not answer (ConnectionResetError)"
    assert of_java == "An error occurred while calling o5.range. Trace:"


def rows_in(work: Path, table: str) -> int:
    return int(pq.ParquetDataset(work / table).read().num_rows)


def test_rows_of_files_that_are_gone_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were joined with the existing ones and made a sound store a broken one."""
    monkeypatch.setattr("tornpage.pipeline.audit.work.TASK_BYTES", 1)
    store, work = copied("03-rollover-blanks-retention", tmp_path / "store"), tmp_path / "work"
    plan = plan_store(0, store)
    open_work(work, [plan], resume=False, overwrite=False)
    assert all(do_task(task, work) for task in plan_tasks(plan))
    before = {table: rows_in(work, table) for table in ("records", "units")}
    last = sorted((store / "commitlog").iterdir())[-1]
    last.unlink()
    plan = plan_store(0, store)
    open_work(work, [plan], resume=True, overwrite=False)
    for task in plan_tasks(plan):
        do_task(task, work)
    fresh = tmp_path / "fresh"
    open_work(fresh, [plan], resume=False, overwrite=False)
    for task in plan_tasks(plan):
        do_task(task, fresh)
    assert before["records"] > rows_in(work, "records") == rows_in(fresh, "records")
    assert {path.name for path in (work / "done").iterdir()} == {path.name for path in (fresh / "done").iterdir()}


def test_a_task_that_is_asked_something_else_is_done_again(tmp_path: Path) -> None:
    """The log begins later: the same bytes of queues have other outlines.

    So do the same bytes of deleted topics.
    """
    store, work = copied("03-rollover-blanks-retention", tmp_path / "store"), tmp_path / "work"
    plan = plan_store(0, store)
    open_work(work, [plan], resume=False, overwrite=False)
    assert all(do_task(task, work) for task in plan_tasks(plan))
    sorted((store / "commitlog").iterdir())[0].unlink()
    plan = plan_store(0, store)
    open_work(work, [plan], resume=True, overwrite=False)
    for task in plan_tasks(plan):
        do_task(task, work)
    outline = outlines(work, plan_tasks(plan))[0]
    again = read_store(plan)
    assert (outline.log, outline.queues, outline.index) == (again.log_outline, again.queue_outline, again.index_outline)
    write_deleted(store, {"RollTopic": 1 << 40})
    plan = plan_store(0, store)
    open_work(work, [plan], resume=True, overwrite=False)
    done = {task.kind: do_task(task, work) for task in plan_tasks(plan)}
    assert done == {"log": True, "queue": False, "index": False}
    assert not (work / "wanted").exists() or not list((work / "wanted").iterdir())


@pytest.mark.parametrize("content", ["", '{"files": [[', "[]", "[" * 100_000, "null"], ids=len)
def test_a_torn_marker_is_a_task_that_is_not_done(tmp_path: Path, content: str) -> None:
    """A power loss may leave a file without its bytes."""
    plan = plan_store(0, copied("01-plain-ascii", tmp_path / "store"))
    task = plan_tasks(plan)[0]
    open_work(tmp_path / "work", [plan], resume=False, overwrite=False)
    do_task(task, tmp_path / "work")
    (tmp_path / "work/done" / f"{task.name}.json").write_text(content)
    assert do_task(task, tmp_path / "work")
    assert not do_task(task, tmp_path / "work")


@pytest.mark.parametrize("content", ["", "[" * 100_000])
def test_damaged_list_of_stores_is_refused(tmp_path: Path, content: str) -> None:
    plan = plan_store(0, copied("01-plain-ascii", tmp_path / "store"))
    open_work(tmp_path / "work", [plan], resume=False, overwrite=False)
    (tmp_path / "work/stores.json").write_text(content)
    with pytest.raises(WorkError, match=r"stores\.json is damaged; give --overwrite"):
        open_work(tmp_path / "work", [plan], resume=True, overwrite=False)


def test_what_counts_as_done_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power loss could leave half of a file of rows whose task counted as done.

    A resumed audit trusted it.
    """
    did: list[tuple[str, Path]] = []
    fsync, replace = os.fsync, Path.replace

    def synced(fd: int) -> None:
        did.append(("sync", Path(os.readlink(f"/proc/self/fd/{fd}"))))
        fsync(fd)

    def replaced(path: Path, target: Path) -> Path:
        assert did[-1] == ("sync", path)
        did.append(("name", target))
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    store, work = copied("03-rollover-blanks-retention", tmp_path / "store"), tmp_path / "work"
    plan = plan_store(0, store)
    open_work(work, [plan], resume=False, overwrite=False)
    for task in plan_tasks(plan):
        did.clear()
        assert do_task(task, work)
        named = [path for what, path in did if what == "name"]
        assert named[-1] == work / "done" / f"{task.name}.json"
        assert all(
            did[number + 1] == ("sync", path.parent) for number, (what, path) in enumerate(did) if what == "name"
        )
        assert {path for table in TABLES for path in (work / table).glob(f"{task.name}.parquet")} == set(named[:-1])
