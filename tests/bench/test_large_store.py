"""Test `tornpage bench spark`: processes, store, damage, refusals, and a small run."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from tornpage.bench.spark.running import Row, measure_spark
from tornpage.bench.spark.shapes import OLD_BYTES, SHAPES
from tornpage.bench.spark.stores import damage, make_store, store_at
from tornpage.bench.spark.tree import Spent, watched_tree
from tornpage.cli.main import cli
from tornpage.outcomes.benches.spark import on_spark
from tornpage.pipeline.audit.audit import audit_store
from tornpage.pipeline.spark.session import SparkUnavailable, require_java, require_packages

BURN = "import time\nwhile time.process_time() < {seconds}: pass"


def burning(seconds: float) -> list[str]:
    return [sys.executable, "-S", "-c", BURN.format(seconds=seconds)]


def test_processor_time_of_children_counts() -> None:
    with watched_tree(every_s=0.05) as tree:
        spent = tree.spent(lambda: subprocess.run(burning(0.3), check=True))
        idle = tree.spent(lambda: None)
    assert 0.25 < spent.cpu_s < 1.0
    assert spent.driver_s == pytest.approx(spent.cpu_s)
    assert spent.peak_bytes > 1 << 20
    assert idle.cpu_s < 0.2


def test_processor_time_of_an_orphan_counts() -> None:
    """The process that started it ends first, as that of an audit ends before its JVM."""
    read, write = os.pipe()
    start = f"import subprocess, sys; subprocess.Popen({burning(0.3)!r}, pass_fds=[{write}])"

    def work() -> None:
        subprocess.run([sys.executable, "-S", "-c", start], pass_fds=[write], check=True)
        os.close(write)
        assert os.read(read, 1) == b""  # the orphan has ended

    with watched_tree(every_s=0.05) as tree:
        spent = tree.spent(work)
    os.close(read)
    assert spent.cpu_s > 0.28


def test_processor_time_of_children_of_a_parent_that_ignores_them_counts() -> None:
    """Regression: the time of each worker of Spark was lost when the worker ended."""
    ignore = "import signal, subprocess; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    nested = f"{ignore}; subprocess.call({burning(0.5)!r})\n{BURN.format(seconds=0.5)}"
    with watched_tree(every_s=0.02) as tree:
        spent = tree.spent(lambda: subprocess.run([sys.executable, "-S", "-c", nested], check=True))
    assert spent.cpu_s > 0.75


def test_a_process_of_java_and_its_children_are_told_apart(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.symlink_to(sys.executable)
    nested = f"import subprocess; subprocess.run({burning(0.4)!r})\n{BURN.format(seconds=0.4)}"
    with watched_tree(every_s=0.05) as tree:
        spent = tree.spent(lambda: subprocess.run([java, "-S", "-c", nested], check=True))
    assert spent.jvm_s > 0.2
    assert spent.workers_s > 0.2


def test_a_store_is_equal_for_equal_seeds_and_damage_has_nine_findings(tmp_path: Path) -> None:
    stores = [make_store(tmp_path / name, log_bytes=2_000_000, file_bytes=1 << 20) for name in ("one", "two")]
    records = [audit_store(str(store.path)).figures["records"] for store in stores]
    assert records[0] == records[1] > 1000
    assert store_at(stores[0].path).log_files == stores[0].log_files
    damage(stores[0])
    codes = sorted(finding.code for finding in audit_store(str(stores[0].path)).findings)
    assert codes == sorted(
        ["CL_BAD_RECORD", "CQ_MISSING", *["CQ_POINTS_NOWHERE"] * 2, "CQ_WRONG_SIZE", "CQ_WRONG_TAGS_CODE",
         "IX_KEY_MISSING", *["IX_POINTS_NOWHERE"] * 2]
    )  # fmt: skip


def test_a_row_has_the_median_round_and_rates() -> None:
    shape = next(shape for shape in SHAPES if shape.name == "walk")
    rounds = tuple(Spent(wall_s, 1.0, 0.5, 0.5, int(wall_s * 1e6)) for wall_s in (4.0, 1.0, 2.0))
    row = Row(shape, rounds, 8_000_000).document()
    assert (row["wall_s"], row["mb_per_s"], row["cpu_s"], row["mb_per_cpu_s"]) == (2.0, 4.0, 2.0, 4.0)
    assert row["peak_mb"] == 4.0
    assert row["old_mb_per_s"] == pytest.approx(OLD_BYTES / 5.69 / 1e6)
    assert row["old_peak_mb"] is None
    assert len({shape.name for shape in SHAPES}) == len(SHAPES)


def test_misuse_is_one_line(tmp_path: Path) -> None:
    def refused(*arguments: str) -> str:
        seen = CliRunner().invoke(cli, ["bench", *arguments])
        assert (seen.exit_code, seen.output.count("\n")) == (2, 1)
        return seen.output

    assert "'fast' is no row; give one of make" in refused("spark", "--only", "fast")
    assert "spark is measured alone" in refused("spark", "put")
    assert "--store belongs to `tornpage bench spark`" in refused("put", "--store", str(tmp_path))
    assert "leave it out with --store" in refused("spark", "--store", str(tmp_path), "--megabytes", "1")
    assert "is no directory" in refused("spark", "--store", str(tmp_path / "none"))
    assert "has no commit log" in refused("spark", "--store", str(tmp_path), "--directory", str(tmp_path))


def test_an_interrupt_keeps_the_rows(tmp_path: Path) -> None:
    shapes = [shape for shape in SHAPES if shape.name in ("make", "walk")]

    def progress(name: str) -> None:
        if name == "walk":
            os.kill(os.getpid(), signal.SIGINT)

    run = measure_spark(shapes, str(tmp_path), log_bytes=100_000, file_bytes=1 << 20, progress=progress)
    assert run.interrupted
    assert [row.shape.name for row in run.rows] == ["make"]
    assert list(tmp_path.iterdir()) == []


def document(verdict: str, *findings: dict[str, str]) -> str:
    return json.dumps({"verdict": verdict, "findings": findings})


@pytest.mark.parametrize(
    ("printed", "complaint", "code", "expected"),
    [
        (
            document("harness", {"code": "harness", "sentence": "the job failed: java.io.IOException: gone"}),
            "",
            4,
            "the verdict is harness, and not broken: the job failed: java.io.IOException: gone",
        ),
        (document("holds"), "", 0, "the verdict is holds, and not broken"),
        ("", "tornpage: Spark needs Java", 2, "the audit ended with code 2: tornpage: Spark needs Java"),
        (document("broken", {"code": "CQ_MISSING"}), "", 1, "other findings than those of another engine: 1"),
    ],
    ids=["harness", "other verdict", "no document", "other findings"],
)
def test_the_row_of_a_failed_audit_says_why(
    printed: str, complaint: str, code: int, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: a row with verdict harness kept the cause to itself.

    The audit by joins prints what is given here.
    """
    audit = tmp_path / "audit"
    audit.write_text(
        "#!/bin/sh\n"
        f"case \"$*\" in *'engine joins'*) ;; *) echo '{document('broken')}'; exit 1;; esac\n"
        f"echo '{printed}'; echo '{complaint}' >&2; exit {code}\n"
    )
    audit.chmod(0o755)
    monkeypatch.setattr("tornpage.bench.spark.running.sys", SimpleNamespace(executable=str(audit)))
    names, place = ["make", "damaged_plain", "damaged_joins"], tmp_path / "place"
    place.mkdir()
    outcome, text, _ = on_spark(names, str(place), store=None, log_bytes=100_000, rounds=1, file_bytes=1 << 20)
    assert (outcome.verdict, outcome.exit_code) == ("harness", 4)
    assert [each["sentence"] for each in outcome.findings] == [f"damaged_joins failed: {expected}"]
    assert text.endswith(f"\ndamaged_joins failed: {expected}")
    assert [row["name"] for row in outcome.extra["rows"]] == ["make", "damaged_plain"]


@pytest.mark.deep
def test_rows_of_a_small_store(tmp_path: Path) -> None:
    try:
        require_java()
        require_packages("pyspark", "pyarrow", "pandas")
    except SparkUnavailable as error:
        pytest.skip(str(error))
    names = [
        *("make", "walk", "audit_plain", "topic_sums_2", "one_topic_2", "one_topic_by_queues_2", "parquet_bodies_2"),
        *("parquet_bodies_bulk_2", "stream_2", "damaged_plain", "damaged_tasks"),
    ]
    outcome, text, table = on_spark(names, str(tmp_path), store=None, log_bytes=8_000_000, rounds=1, file_bytes=4 << 20)
    rows = json.loads(json.dumps(outcome.extra["rows"]))
    assert outcome.findings == []
    assert [row["name"] for row in rows] == names
    assert all(row["cpu_s"] > 0 and row["peak_mb"] > 0 for row in rows)
    assert all(row["jvm_cpu_s"] > 0 for row in rows if row["name"].endswith(("_2", "tasks")))
    assert text.count("\n") >= len(names)
    assert table.count("\n| ") >= len(names)
    assert list(tmp_path.iterdir()) == []
