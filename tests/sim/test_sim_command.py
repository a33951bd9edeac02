"""Test `tornpage sim`: documents, tables, files, refusals."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.json_schema import objections
from tornpage.cli.simulating.sim import command
from tornpage.sim import sweep

FIGURES = {
    "messages",
    "put_mean_us",
    "put_p50_us",
    "put_p90_us",
    "put_p99_us",
    "put_max_us",
    "at_risk_messages_mean",
    "at_risk_messages_p99",
    "at_risk_bytes_mean",
    "exposed_p99_us",
    "flushes",
    "flush_batch_mean",
    "rolls",
    "stalls",
    "stall_max_us",
    "simulated_messages_per_s",
}


def call(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


def document(*arguments: str) -> dict[str, Any]:
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    loaded = json.loads(result.stdout, parse_constant=pytest.fail)
    assert isinstance(loaded, dict)
    return loaded


def test_run_gives_a_document_with_figures_and_tables() -> None:
    found = document("run", "--flush", "sync", "--messages", "3000", "--file-size", "500000", "--seed", "7")
    assert (found["command"], found["verdict"], found["seed"]) == ("sim run", None, 7)
    assert set(found["figures"]) >= FIGURES
    assert "law_mean_us" not in found["figures"]
    assert found["timings"] == ["simulated_messages_per_s"]
    assert found["scenario"]["flush"] == "sync"
    assert found["scenario"]["file_bytes"] == 500_000
    assert set(found["tables"]) == {"put_cdf", "at_risk", "rolls", "put_histogram", "crashes"}
    assert len(found["tables"]["rolls"]) == found["figures"]["rolls"] > 0


def test_equal_seeds_give_equal_documents_without_timings() -> None:
    documents = [document("run", "--messages", "2000", "--seed", seed) for seed in ("5", "5", "6")]
    for found in documents:
        for name in found["timings"]:
            del found["figures"][name]
    assert documents[0] == documents[1] != documents[2]


def test_run_speaks_for_people_and_names_the_law_it_meets() -> None:
    result = call("run", "--flush", "sync", "--device", "exponential-1ms", "--rate", "1000", "--messages", "10000")
    assert result.exit_code == 0
    for word in (
        "put, us",
        "at risk, messages",
        "oldest unflushed, us",
        "stall at a roll",
        "group commit formula: mean 1,667 us",
    ):
        assert word in result.output
    found = document("run", "--device", "put-100us", "--rate", "5000", "--messages", "10000", "--file-size", "99999999")
    assert found["law"] == "M/D/1"
    assert found["figures"]["law_mean_us"] == pytest.approx(150)
    assert abs(found["figures"]["law_errors"]) < 4


def test_async_answers_sooner_and_risks_more() -> None:
    sync, timed = (document("run", "--flush", flush, "--messages", "30000") for flush in ("sync", "async"))
    assert sync["figures"]["put_p50_us"] > 50 * timed["figures"]["put_p50_us"]
    assert timed["figures"]["at_risk_messages_mean"] > 50 * sync["figures"]["at_risk_messages_mean"]


def test_one_ahead_has_no_stalls_where_on_demand_has() -> None:
    ahead, demand = (
        document("run", "--allocation", kind, "--messages", "20000", "--file-size", "1048576")
        for kind in ("one-ahead", "on-demand")
    )
    assert ahead["figures"]["rolls"] == demand["figures"]["rolls"] == demand["figures"]["stalls"] > 0
    assert ahead["figures"]["stalls"] == 0
    assert demand["figures"]["stall_max_us"] > 100


def test_sweep_writes_rows_and_tables(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "sweep"
    found = document("sweep", "--messages", "500", "--rate", "1000", "--rate", "9000", "--out", str(out))
    assert found["figures"]["points"] == found["figures"]["points_done"] == len(found["rows"]) == 2 * 2 * 2
    rows = {path.stem: [json.loads(line) for line in path.read_text().splitlines()] for path in out.glob("*.jsonl")}
    assert set(rows) == {"points", "put_cdf", "at_risk", "rolls", "flushes", "put_histogram", "crashes"}
    assert rows["points"] == found["rows"]
    assert {row["point"] for row in rows["put_cdf"]} == set(range(8))
    written = json.loads((out / "run.json").read_text())
    assert not [*objections(written)]
    assert {name: written[name] for name in found} == found
    text = call("sweep", "--messages", "500", "--flush", "async", "--interval-ms", "10", "--interval-ms", "90").output
    assert "async 10 ms, 4 pages, 10000 ms" in text
    assert "async 90 ms, 4 pages, 10000 ms" in text
    assert text.count("open 1000/s") == 4


def test_an_interrupted_sweep_keeps_the_points_that_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = sweep.run_tables, 0

    def interrupted(point: sweep.Point, progress: sweep.TablesProgress) -> sweep.PointTables:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return real(point, progress)

    monkeypatch.setattr(sweep, "run_tables", interrupted)
    result = call("sweep", "--messages", "300", "--out", str(tmp_path), "--json")
    assert result.exit_code == 130
    found = json.loads(result.stdout)
    assert (found["figures"]["points"], found["figures"]["points_done"], len(found["rows"])) == (12, 2, 2)
    assert len((tmp_path / "points.jsonl").read_text().splitlines()) == 2
    assert json.loads((tmp_path / "run.json").read_text())["interrupted"] is True


def test_run_writes_the_same_tables_as_a_sweep_of_one_point(tmp_path: Path) -> None:
    asked = ["--messages", "700", "--rate", "3000", "--flush", "sync", "--allocation", "on-demand"]
    call("run", *asked, "--out", str(tmp_path / "run"))
    call("sweep", *asked, "--out", str(tmp_path / "sweep"))
    documents = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("run", "sweep")]
    assert [each["command"] for each in documents] == ["sim run", "sim sweep"]
    for path in (tmp_path / "sweep").glob("*.jsonl"):
        assert (tmp_path / "run" / path.name).read_text() == path.read_text()


def test_closed_loops_and_durations_are_taken() -> None:
    found = document("run", "--flush", "sync", "--producers", "4", "--think-us", "500", "--seconds", "0.2")
    assert 100 < found["figures"]["messages"] < 4 * 0.2 / 0.0005
    assert found["scenario"]["producers"] == 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--rate", "1e-300"], "the load would last"),
        (["--rate", "1e-300", "--seconds", "1"], "the load would last"),
        (["--rate", "1e-9", "--messages", "100"], "the load would last 1e+11 s; 1e+08 s at most"),
        (["--seconds", "1e300"], "has no end"),
        (["--seconds", "1e290"], "the duration would last"),
        (["--interval-ms", "2147483648"], "flush_interval_commit_log is 2147483648; a broker takes 2147483647"),
        (["--thorough-ms", str(10**20)], "flush_commit_log_thorough_interval is"),
        (["--pool", "2", "--commit-interval-ms", str(10**20)], "commit_interval_commit_log is"),
        (["--pool", str(10**20)], "transient_store_pool_size is"),
        (["--file-size", str(10**20)], "a log file of 100000000000000000000 bytes is impossible"),
        (["--size", str(2**31), "--file-size", str(2**33)], "the largest record is 2147483648"),
        (["--replica-us", "1e20"], "the answer of a replica would last"),
        (["--replica-us", "1e307"], "has no end"),
        (["--producers", "3", "--think-us", "1e300"], "the load would last"),
        (["--producers", "3", "--think-us", "1e300", "--seconds", "1"], "the load would last"),
        (["--burst-ms", "1e300", "--rest-ms", "1"], "the load would last"),
        (["--burst-ms", "5", "--rest-ms", "1e18"], "the load would last"),
        (["--writeback", "--wake-ms", str(10**20)], "a wait of the kernel's write-back would last"),
    ],
    ids=lambda said: " ".join(said)[:40] if isinstance(said, list) else "",
)
def test_times_beyond_every_clock_are_refused(arguments: list[str], sentence: str) -> None:
    """Some ended in a traceback; others ran forever, because their times exceeded 64 bits."""
    result = call("run", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "--rate", "nan"], "a rate of nan messages/s is impossible"),
        (["run", "--rate", "0"], "a rate of 0.0 messages/s is impossible"),
        (["run", "--rate", "inf"], "a rate of inf messages/s is impossible"),
        (["run", "--rate", "5", "--producers", "5"], "choose one"),
        (["run", "--think-us", "5"], "--think-us goes with --producers"),
        (["run", "--device", "floppy"], "no device 'floppy'; there are vm-ext4"),
        (["run", "--interval-ms", "0"], "flush_interval_commit_log is 0"),
        (["run", "--least-pages", "-1"], "flush_commit_log_least_pages is -1"),
        (["run", "--flush", "sync", "--least-pages", "1"], "group commit has no timer"),
        (["sweep", "--flush", "sync", "--thorough-ms", "1"], "group commit has no timer"),
        (["run", "--size", "20000000"], "does not fit a log file"),
        (["run", "--size", "100", "--size-max", "50"], "record sizes from 100 to 50 bytes are impossible"),
        (["run", "--messages", "90000000"], "too many for one run"),
        (["run", "--seconds", "nan"], "has no end"),
        (["run", "--seconds", "inf"], "has no end"),
        (["run", "--seconds", "1e8"], "too many for one run"),
        (["run", "--fast-fail"], "go with --pool"),
        (["run", "--pool", "0"], "a pool of 0 buffers is impossible"),
        (["run", "--pool", "1", "--fast-fail"], "a pool that fails fast needs 2 buffers"),
        (["run", "--pool", "2", "--commit-interval-ms", "0"], "commit_interval_commit_log is 0"),
        (["run", "--pool", "2", "--flush", "sync"], "SYNC_FLUSH leaves a transient store pool unused"),
        (["run", "--replica-us", "5", "--producers", "3"], "only open producers can wait for a replica"),
        (["run", "--replica-us", "-5"], "a duration is at least 0 ns"),
        (["run", "--replica-us", "inf"], "has no end"),
        (["run", "--wake-ms", "5"], "go with --writeback"),
        (["run", "--writeback", "--wake-ms", "0"], "wake_ms is 0"),
        (["run", "--writeback", "--pool", "3"], "without a pool and without warm-up only"),
        (["run", "--burst-ms", "5"], "bursts need --burst-ms and --rest-ms"),
        (["run", "--burst-ms", "nan", "--rest-ms", "5"], "are impossible"),
        (["run", "--crash-at-ms", "-1"], "--crash-at-ms has to lie between 0 and"),
        (["run", "--broker-config", "/proc/nonexistent"], "cannot read --broker-config /proc/nonexistent"),
        (["run", "--broker-config", "x", "--flush", "sync"], "leave out the options for policies"),
        (["sweep", "--out", "/dev/null/x"], "cannot write /dev/null/x"),
    ],
)
def test_what_is_impossible_is_refused_in_one_line(arguments: list[str], sentence: str) -> None:
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("tornpage: ")
    assert result.stderr.count("\n") == 1
    assert sentence in result.stderr


@pytest.mark.parametrize(("command", "seconds"), [("validate", "nan"), ("validate", "inf"), ("calibrate", "nan")])
def test_measuring_has_an_end(tmp_path: Path, command: str, seconds: str) -> None:
    out = ["--out", str(tmp_path / "out")] if command == "calibrate" else []
    result = call(command, str(tmp_path), "--seconds", seconds, *out)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"'--seconds': {seconds} has no end" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments", [["run", "--flush", "never"], ["run", "--messages", "0"], ["run", "--seed", "-1"]]
)
def test_misuse_is_clicks(arguments: list[str]) -> None:
    assert call(*arguments).exit_code == 2


def test_a_pool_and_crashes_are_told_about() -> None:
    asked = ["run", "--pool", "3", "--flush", "woken", "--messages", "5000", "--crashes", "200", "--crash-at-ms", "7"]
    found = document(*asked)
    assert found["scenario"]["pool"] == "3 buffers, 200 ms, 4 pages, 200 ms"
    assert found["figures"]["crashes"] == len(found["tables"]["crashes"]) == 201
    assert 7000.0 in {row["at_us"] for row in found["tables"]["crashes"]}
    assert found["figures"]["kill_crash_messages_max"] > 0
    text = call(*asked).output
    assert "a process kill at 201 moments" in text
    assert "pool of 3 buffers" in text


def test_bursts_are_taken() -> None:
    found = document("run", "--rate", "50000", "--burst-ms", "10", "--rest-ms", "90", "--seconds", "1")
    assert found["figures"]["messages"] == pytest.approx(5_000, rel=0.1)
    assert "bursts 50000/s for 10 ms for 90 ms" in found["scenario"]["load"]


def test_a_broker_is_simulated_from_its_settings(tmp_path: Path) -> None:
    settings = tmp_path / "broker.conf"
    settings.write_text(
        "# a comment\nbrokerName = a\nflushDiskType=ASYNC_FLUSH\nflushIntervalCommitLog=50\n"
        "transientStorePoolEnable=true\ntransientStorePoolSize=4\nmappedFileSizeCommitLog=1048576\n"
    )
    found = document("run", "--broker-config", str(settings), "--messages", "3000")
    assert found["scenario"]["flush"] == "async 50 ms, 4 pages, 10000 ms"
    assert found["scenario"]["pool_buffers"] == 4
    assert found["scenario"]["file_bytes"] == 1 << 20
    assert [finding["sentence"] for finding in found["findings"]] == ["brokerName has no effect here"]
    settings.write_text("flushIntervallCommitLog=50")
    refused = call("run", "--broker-config", str(settings))
    assert refused.exit_code == 2
    assert "did you mean flushIntervalCommitLog" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_the_kernels_write_back_is_taken() -> None:
    asked = ["run", "--writeback", "--expire-ms", "200", "--wake-ms", "100", "--interval-ms", "5000"]
    found = document(*asked, "--messages", "60000")
    assert found["scenario"]["writeback_wake_ms"] == 100
    assert 0 < found["figures"]["kernel_bytes"] < found["figures"]["device_bytes"]
