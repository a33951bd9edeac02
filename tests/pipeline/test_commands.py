"""Test `audit` and `campaign` for users: verdicts, exit codes, documents, one-line errors."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn

import pytest
from click.testing import CliRunner

from tests.support.pipeline.handmade import copied, overwrite
from tornpage.cli import audit, campaign
from tornpage.cli.simulating import sim
from tornpage.outcomes.auditing import engine_for
from tornpage.pipeline.audit.stores import plan_store
from tornpage.pipeline.audit.work import open_work
from tornpage.pipeline.campaign.campaign import CrashCampaign
from tornpage.pipeline.campaign.cost import Trial
from tornpage.pipeline.spark.jobs import spark_failures
from tornpage.pipeline.spark.session import JobFailed, SparkUnavailable, require_java
from tornpage.properties.explore.crashes.shards import Shard

QUEUE_FILE = "consumequeue/TopicTest/0/00000000000000000000"


def run(command: Any, *arguments: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error."""
    done = CliRunner().invoke(command, arguments, env=env)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_sound_store_holds(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    code, said, _ = run(audit.command, str(store), "--json")
    document = json.loads(said)
    assert (code, document["verdict"], document["findings"]) == (0, "holds", [])
    assert document["figures"]["records"] == document["figures"]["units"] == 60
    assert set(document["timings"]) <= set(document["figures"])


def test_changed_entry_is_broken_in_text_and_document(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    overwrite(store / QUEUE_FILE, 12, b"\x01")
    code, said, _ = run(audit.command, str(store), "--engine", "plain")
    assert code == 1
    assert f"damage: CQ_WRONG_TAGS_CODE {QUEUE_FILE} position 0" in said
    assert said.endswith("verdict: broken\n")


@pytest.mark.parametrize("what", ["absent", "file", "empty"])
@pytest.mark.parametrize("engine", ["auto", "plain", "joins"])
def test_what_is_no_store_is_one_line(tmp_path: Path, what: str, engine: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    code, said, complaint = run(audit.command, str(tmp_path / what), "--engine", engine)
    assert (code, said) == (2, "")
    assert complaint.startswith("tornpage: ")
    assert complaint.count("\n") == 1


@pytest.mark.parametrize("command", ["audit", "campaign"])
def test_missing_java_is_one_line_and_small_stores_need_none(tmp_path: Path, command: str) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    no_java = {"PATH": str(tmp_path), "JAVA_HOME": ""}
    asked = (
        (audit.command, str(store), "--engine", "tasks") if command == "audit" else (campaign.command, "--shards", "1")
    )
    code, said, complaint = run(*asked, env=no_java)
    assert (code, said) == (2, "")
    assert "Java" in complaint
    assert complaint.count("\n") == 1
    assert run(audit.command, str(store), env=no_java)[0] == 0


@pytest.mark.parametrize("more", [("--engine", "tasks"), ("--engine", "joins"), ("--work", "WORK")])
def test_an_audit_without_java_names_the_engine_that_needs_none(tmp_path: Path, more: tuple[str, ...]) -> None:
    """Regression: the message named only the installation of Java."""
    store = copied("01-plain-ascii", tmp_path / "store")
    no_java = {"PATH": str(tmp_path), "JAVA_HOME": ""}
    asked = [str(tmp_path / "work") if each == "WORK" else each for each in more]
    code, said, complaint = run(audit.command, str(store), *asked, env=no_java)
    remedy = f"--engine plain{' without --work' if more[0] == '--work' else ''}, which needs neither Java nor Spark"
    assert (code, said, complaint.count("\n")) == (2, "", 1)
    assert complaint.endswith(f"; or give {remedy}\n")
    assert run(audit.command, str(store), "--engine", "plain", env=no_java)[0] == 0


def refused(*asked: str) -> str:
    """Return the message of a refused audit: one line, exit code 2, empty standard output."""
    code, said, complaint = run(audit.command, *asked)
    assert (code, said) == (2, "")
    assert complaint.startswith("tornpage: ")
    assert complaint.count("\n") == 1
    return complaint


def test_options_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    store = str(copied("01-plain-ascii", tmp_path / "store"))
    assert "--repair-to DIR" in refused(store, "--plan")
    assert "--repair-to DIR" in refused(store, "--log-file-bytes", "65536")
    assert "--work DIR" in refused(store, "--resume")
    assert "one of them" in refused(store, "--work", str(tmp_path / "w"), "--resume", "--overwrite")
    assert "--engine joins" in refused(store, "--work", str(tmp_path / "w"), "--engine", "plain")
    assert "one STORE" in refused(store, store, "--repair-to", str(tmp_path / "copy"))
    assert "--work DIR" in refused(store, "--engine", "joins", "--master", "spark://127.0.0.1:1")
    assert run(audit.command, store, "--file-bytes", str(10**30))[0] == 2
    assert "cannot read the broker's settings" in refused(store, "--broker-config", str(tmp_path / "no"))


def test_work_directory_that_cannot_take_rows_is_refused_before_spark_starts(tmp_path: Path) -> None:
    store = copied("01-plain-ascii", tmp_path / "store")
    (tmp_path / "file").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thing").touch()
    assert "cannot write" in refused(str(store), "--work", str(tmp_path / "file"))
    assert "other content" in refused(str(store), "--work", str(tmp_path / "other"))
    assert "lies in the store" in refused(str(store), "--work", str(store / "work"))
    open_work(tmp_path / "rows", [plan_store(0, store)], resume=False, overwrite=False)
    (tmp_path / "rows/keys/part").touch()
    assert "--resume, --overwrite" in refused(str(store), "--work", str(tmp_path / "rows"))
    other = copied("01-plain-ascii", tmp_path / "store2")
    assert "other stores" in refused(str(other), "--work", str(tmp_path / "rows"), "--resume")
    open_work(tmp_path / "rows", [plan_store(0, other)], resume=False, overwrite=True)
    assert list((tmp_path / "rows/keys").iterdir()) == []


def test_mended_copy_is_planned_first_and_then_written(tmp_path: Path) -> None:
    store = copied("03-rollover-blanks-retention", tmp_path / "store")
    overwrite(store / "commitlog/00000000000000098304", 300, b"damage")
    asked = (str(store), "--repair-to", str(tmp_path / "copy"), "--json")
    code, said, _ = run(audit.command, *asked, "--plan")
    plan = json.loads(said)["plan"]
    assert (code, plan["records"], plan["fillers"], plan["lostMessages"]) == (1, 175, 1, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    code, said, progress = run(audit.command, *asked)
    document = json.loads(said)
    assert (code, document["verdict"], document["store_verdict"]) == (0, "holds", "broken")
    assert document["plan"] == plan
    assert progress.index("1 lost message: ") < progress.index("copy 00000000000000032768")
    assert run(audit.command, str(tmp_path / "copy"))[0] == 0
    assert "already exists" in refused(*asked)


def test_copy_with_log_files_of_another_size(tmp_path: Path) -> None:
    store, copy = copied("03-rollover-blanks-retention", tmp_path / "store"), tmp_path / "copy"
    asked = (str(store), "--repair-to", str(copy), "--json", "--log-file-bytes")
    code, said, _ = run(audit.command, *asked, "65536", "--plan")
    assert (code, json.loads(said)["plan"]["logFileBytes"]) == (0, 65_536)
    code, said, progress = run(audit.command, *asked, "65536")
    assert (code, json.loads(said)["verdict"]) == (0, "holds")
    assert "plan: convert the log to files of 65,536 bytes" in progress
    assert run(audit.command, str(copy))[0] == 0
    assert "--log-file-bytes" in refused(*asked[:2], str(tmp_path / "other"), "--log-file-bytes", "100")


@pytest.mark.slow
def test_serial_campaign_gives_a_document(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    asked = ("--shards", "2", "--seed", "3", "--states-per-shard", "30", "--engine", "serial", "--json")
    code, said, _ = run(campaign.command, *asked, "--out", str(tmp_path / "run"))
    document = json.loads(said)
    figures = document["figures"]
    assert (code, document["verdict"], figures["canaries"]) == (0, "holds", 2)
    assert figures["states"] >= 60
    code, said, _ = run(campaign.command, *asked, "--out", str(tmp_path / "run"), "--resume")
    again = json.loads(said)
    assert again["result_hash"] == document["result_hash"]
    assert (figures["shards_skipped"], again["figures"]["shards_skipped"]) == (0, 2)


def test_plan_prints_the_cost_and_runs_only_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    trials: list[Shard] = []

    def measured(kind: object, shard: Shard) -> Trial:
        assert isinstance(kind, CrashCampaign)
        trials.append(shard)
        return Trial(
            states=1000,
            runs=5,
            shard_s=0.5,
            explored_s=4.0,
            wall_s=9.0,
            file_bytes=20_000.0,
            row_bytes=500.0,
            spread=0.1,
        )

    monkeypatch.setattr("tornpage.pipeline.campaign.cost.measured_trial", measured)
    asked = ("--plan", "--shards", "10000", "--states-per-shard", "100000")
    code, said, _ = run(campaign.command, *asked, "--cores", "100", "--json")
    document = json.loads(said)
    figures = document["figures"]
    assert (code, document["verdict"]) == (0, None)
    assert (figures["states"], figures["histories"], figures["rows"]) == (10**9, 5_000_000, 5_010_000)
    assert figures["processor_s"] == pytest.approx(10_000 * (0.5 + 100 * 4.0))
    assert figures["seconds"] == pytest.approx(figures["processor_s"] / 100)
    assert figures["processor_s_max"] - figures["processor_s"] == pytest.approx(2 * 0.1 * 10_000 * 100 * 4.0)
    assert figures["disk_bytes"] == 10_000 * 20_000 + 5_000_000 * 500
    assert len(trials) == 1
    _, said, _ = run(campaign.command, *asked, "--master", "local-cluster[5,2,1024]")
    assert "1,000,000,000 counted crash states in 10,000 shards on 10 cores" in said
    for more, complaint in (
        (("--master", "spark://host:7077"), "does not say how many cores"),
        (("--out", "RUN"), "--out is not for --plan"),
    ):
        code, _, said = run(campaign.command, *asked, *more)
        assert code == 2
        assert complaint in said
    assert "--cores is for --plan" in run(campaign.command, "--cores", "2")[2]


def test_planted_bug_breaks_a_campaign_with_tokens() -> None:
    asked = ("--shards", "1", "--states-per-shard", "50", "--engine", "serial", "--bug", "lying-flush", "--json")
    code, said, _ = run(campaign.command, *asked)
    findings = json.loads(said)["findings"]
    assert code == 1
    assert findings[0]["token"].startswith("tp1-")


def test_resume_needs_a_directory_of_the_same_campaign(tmp_path: Path) -> None:
    assert run(campaign.command, "--resume")[0] == 2
    (tmp_path / "file").touch()
    code, _, complaint = run(campaign.command, "--out", str(tmp_path), "--resume")
    assert code == 2
    assert "has no campaign" in complaint


@pytest.mark.slow
def test_audit_on_spark_is_quiet_and_finds_the_damage(tmp_path: Path) -> None:
    """Run in a new process and an empty directory.

    The session is its own, no files are left, and there is no other output.
    """
    try:
        require_java()
    except SparkUnavailable as error:
        pytest.skip(str(error))
    store = copied("01-plain-ascii", tmp_path / "store")
    overwrite(store / QUEUE_FILE, 140, (1 << 40).to_bytes(8, "big"))
    (tmp_path / "here").mkdir()
    program = "from tornpage.cli.audit import command; command.main(prog_name='tornpage audit')"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, str(store), "--engine", "tasks", "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path / "here",
    )
    assert (done.returncode, done.stderr) == (1, "")
    found = [(finding["code"], finding["file"], finding["position"]) for finding in json.loads(done.stdout)["findings"]]
    assert found == [("CQ_MISSING", QUEUE_FILE, 140), ("CQ_POINTS_NOWHERE", QUEUE_FILE, 140)] or found == [
        ("CQ_POINTS_NOWHERE", QUEUE_FILE, 140),
        ("CQ_MISSING", QUEUE_FILE, 140),
    ]
    assert list((tmp_path / "here").iterdir()) == []


def test_the_engine_is_chosen_by_what_stores_take_in_memory_and_together() -> None:
    gib = 1 << 30
    assert engine_for([2 * gib]) == engine_for([2 * gib, 2 * gib]) == "plain"
    assert engine_for([2 * gib, 2 * gib, 1]) == "tasks"
    assert engine_for([2 * gib + 1]) == engine_for([1, 2 * gib + 1]) == "joins"


@pytest.mark.parametrize("error", [ConnectionRefusedError(111, "Connection refused"), "Py4JError", "PySparkException"])
def test_a_spark_that_fails_under_way_ends_a_sweep_in_one_line(
    error: Exception | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended in a traceback.

    One whose Java process had gone reported a directory that cannot be written.
    """
    failures = {kind.__name__: kind for kind in spark_failures()}
    if not failures:
        pytest.skip("pyspark is not installed")

    def fails(*_: Any, **__: Any) -> NoReturn:
        raise failures[error]("Job aborted\nCaused by: java.io.IOException: gone") if isinstance(error, str) else error

    monkeypatch.setattr("tornpage.pipeline.spark.session.require_java", lambda: 17)
    monkeypatch.setattr("tornpage.pipeline.spark.session.spark_session", lambda *_, **__: nullcontext())
    monkeypatch.setattr("tornpage.pipeline.sweep.sweep.sweep", fails)
    asked = ("sweep", "--messages", "1000", "--rate", "1000", "--master", "local[2]", "--out", str(tmp_path / "out"))
    code, said, complaint = run(sim.command, *asked, "--json")
    document = json.loads(said)
    assert (code, document["verdict"]) == (4, "harness")
    [finding] = [each for each in document["findings"] if each["severity"] == "harness"]
    assert finding["sentence"].endswith("; run it again with --resume")
    assert ("gone" if isinstance(error, str) else "the Java process of Spark") in finding["sentence"]
    assert "Traceback" not in complaint


def test_failed_job_of_an_audit_is_a_failure_of_the_harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended with the exit code of a misuse."""

    def fails(*_: Any) -> NoReturn:
        raise JobFailed("the job failed: java.io.IOException: gone; with --work and --resume the next run continues it")

    monkeypatch.setattr("tornpage.outcomes.auditing._audits", fails)
    store = copied("01-plain-ascii", tmp_path / "store")
    code, said, _ = run(audit.command, str(store), "--engine", "joins", "--json")
    document = json.loads(said)
    assert (code, document["verdict"]) == (4, "harness")
    [finding] = document["findings"]
    assert "java.io.IOException: gone" in finding["sentence"]
