"""Test `tornpage sim choose`: answer, exit codes, run directory, misuse.

The store is never measured here.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import tornpage.bench.validation.policy_check
from tests.sim.made_samples import MADE_MACHINE, made_calibration
from tornpage.bench.calibration import calibrate
from tornpage.bench.calibration.snapshot import machine_snapshot
from tornpage.bench.validation.policy_check import Checked
from tornpage.cli.report import command as report
from tornpage.cli.simulating.sim import command
from tornpage.sim.broker_config import policies_of
from tornpage.sim.device.calibration_file import load, save

QUICK = ("--rate", "2000", "--messages", "400", "--max-p99", "2ms")
PRESET = ("--device", "vm-ext4", *QUICK)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(command, ["choose", *arguments])


def document(*arguments: str, code: int = 0) -> dict[str, Any]:
    result = call(*arguments, "--json")
    assert result.exit_code == code, result.output
    found = json.loads(result.stdout, parse_constant=pytest.fail)
    assert isinstance(found, dict)
    return found


def here() -> Mapping[str, str | int | float]:
    return {**machine_snapshot("."), "file_system": "ext4", "cpu_pressure_share": 0.0, "measured_s": 9.0}


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("calibration") / "disk"
    save(made_calibration(snapshot=here()), path)
    return str(path)


@pytest.fixture
def run_for_real(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Stand in for the real store; return what it is asked for."""
    asked: list[dict[str, Any]] = []

    def check(directory: str, policy: Any, **more: Any) -> Checked:
        asked.append({"directory": directory, "policy": policy.name, **more})
        return Checked(1_000, 50.0, 2_500.0, 3.0, 7, 50, 12.5, 9)

    monkeypatch.setattr(tornpage.bench.validation.policy_check, "check_policy", check)
    return asked


def test_a_second_copy_is_compared_if_its_link_is_named(run_for_real: list[dict[str, Any]]) -> None:
    asked = ("--device", "ebs-gp3", *QUICK, "--max-loss", "0ms", "--replica", "200us", "--check")
    found = document(*asked)
    assert found["chosen"] == "async 500 ms + received by a replica"
    assert found["broker_conf"]["brokerRole"] == "SYNC_MASTER"
    assert found["rows"][0]["loss_messages_max"] == 0
    kinds = [row["kind"] for row in found["rows"]]
    assert kinds.count("replica") == 3
    assert any(sentence.startswith("The link (a link of 200us) was given") for sentence in found["how_sure"])
    assert [finding["code"] for finding in found["findings"]] == ["check-left-out"]
    assert not run_for_real
    alone = document("--device", "ebs-gp3", *QUICK, "--max-loss", "0ms", code=3)
    assert "brokerRole" not in alone["broker_conf"]
    assert not [row for row in alone["rows"] if row["kind"] == "replica"]


def test_a_wrong_link_is_refused_in_one_line() -> None:
    result = call("--device", "vm-ext4", *QUICK, "--max-loss", "0ms", "--replica", "next door")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "--replica 'next door' is no link; there are 'loopback', 'same rack', 'other zone'" in result.stderr


def test_the_chosen_policy_meets_the_budget_and_its_lines_are_settings() -> None:
    found = document(*PRESET, "--max-loss", "10ms")
    first = found["rows"][0]
    assert (found["command"], found["verdict"], found["timings"]) == ("sim choose", None, [])
    assert found["chosen"] == first["policy"]
    assert first["loss_ms"] <= first["loss_ms_max"] <= 10
    assert first["put_p99_us"] <= 2_000
    assert first["seeds"] == 5
    assert found["figures"]["policies_met"] == sum(row["meets"] for row in found["rows"]) > 1
    assert found["figures"]["policies"] == len(found["rows"]) > 70
    used = [row["budget_used"] for row in found["rows"] if row["meets"]]
    assert used == sorted(used)
    assert max(used) <= 1
    assert policies_of(found["broker_conf"]).file_bytes == 1 << 30
    assert set(found["frontier"]) <= {row["policy"] for row in found["rows"]}
    assert found["load"] == {"rate_per_s": 2000.0, "body_bytes": 1024, "record_bytes": 1146}


@pytest.mark.slow
def test_equal_seeds_give_equal_documents() -> None:
    asked = (*PRESET, "--max-loss", "10ms", "--seed", "5")
    first = document(*asked)
    assert document(*asked) == first
    assert document(*asked[:-1], "6")["rows"] != first["rows"]


def test_text_begins_with_the_answer_and_states_losses_in_both_units() -> None:
    text = call("--device", "vm-ext4", *QUICK[:-1], "100us", "--max-loss", "50ms").stdout
    assert text.startswith("budget: a power loss loses at most 50 ms of acknowledged messages, put p99 at most 100 us")
    assert "\nchosen: async " in text
    assert "\n  flushDiskType=ASYNC_FLUSH\n  flushCommitLogTimed=true\n  flushIntervalCommitLog=" in text
    assert " msg" in text.split("frontier: ")[1]
    assert "vm-ext4 is a preset: another disk has other times." in text
    assert "`tornpage sim validate DIR --out V` measures it" in text


@pytest.mark.slow
def test_none_that_meets_exits_with_3_and_names_the_nearest() -> None:
    asked = ("--device", "hdd", *QUICK, "--max-loss", "0ms")
    found = document(*asked, code=3)
    assert (found["verdict"], found["figures"]["policies_met"]) == ("unknown", 0)
    assert [finding["code"] for finding in found["findings"]] == ["none-meets"]
    assert found["nearest"] == found["rows"][0]["policy"]
    assert found["nearest"].startswith("sync")
    result = call(*asked)
    assert result.exit_code == 3
    assert "(no policy meets the budget)\n" in result.stdout
    assert "times the allowed one" in result.stdout
    assert "flushDiskType=SYNC_FLUSH" in result.stdout


def test_a_kill_loses_only_what_a_pool_holds() -> None:
    found = document(*PRESET, "--max-loss", "0ms", "--crash", "kill")
    for row in found["rows"]:
        assert (row["loss_ms_max"] > 0) == (row["loss_messages_max"] > 0)
        assert row["kind"] == "pool" or not row["loss_messages_max"]
    assert any(row["loss_messages_max"] for row in found["rows"] if row["kind"] == "pool")


def test_a_share_of_the_crashes_loses_less_than_the_worst_one() -> None:
    rows = document(*PRESET, "--max-loss", "10ms", "--crash-share", "0.5")["rows"]
    lossy = [row for row in rows if row["loss_ms_max"] > 0]
    assert lossy
    assert all(row["loss_ms"] < row["loss_ms_max"] for row in lossy)


def test_the_run_directory_becomes_a_page(tmp_path: Path) -> None:
    out = tmp_path / "run"
    found = document(*PRESET, "--max-loss", "10ms", "--out", str(out))
    assert json.loads((out / "run.json").read_text())["chosen"] == found["chosen"]
    result = CliRunner().invoke(report, [str(out)])
    assert result.exit_code == 0, result.output
    page = (out / "index.html").read_text()
    assert "Which policy loses at most 10 ms at a put p99 of at most 2 ms?" in page
    assert found["chosen"] in page
    assert "tornpage sim choose --device vm-ext4 --rate 2000" in page


@pytest.mark.slow
def test_a_calibration_brings_its_noise_and_a_validation_its_errors(disk: str, tmp_path: Path) -> None:
    scores = [
        {"case": f"{case} 1000/s", "error_p99": error, "floor_p99": -0.1, "error_at_risk": 0.0, "passes": error > -0.3}
        for case, error in (("group commit", -0.5), ("group commit", 0.1), ("timed 10 ms 1 page", 0.2))
    ]
    (tmp_path / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in scores))
    asked = ("--device", disk, *QUICK, "--max-loss", "0ms")
    plain = document(*asked)
    assert plain["device"] == "calibrated ext4, mmap"
    assert "Even and odd rounds of the calibration differ at the p99 of a sync by up to " in plain["how_sure"][1]
    found = document(*asked, "--validation", str(tmp_path))
    assert found["chosen"].startswith("sync")
    p99_ms = found["rows"][0]["put_p99_us"] / 1e3
    assert "On 2 validated cases of this kind (group commit) the predicted p99 was off by up to -50%" in found[
        "how_sure"
    ][3]  # fmt: skip
    assert "1 of them missed" in found["how_sure"][3]
    assert f"the p99 is {2 * p99_ms:.3g} ms" in found["how_sure"][4]
    assert found["rows"][0]["validated_p99_error"] == -0.5


@pytest.mark.slow
def test_here_measures_first_and_keeps_the_calibration_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds: list[float] = []

    def measure(*_: object, **more: Any) -> calibrate.Calibrated:
        seconds.append(more["seconds"])
        return calibrate.Calibrated(made_calibration(snapshot=here()), False)

    monkeypatch.setattr(calibrate, "calibrate", measure)
    kept = tmp_path / "disk"
    asked = ("--here", str(tmp_path), *QUICK, "--max-loss", "10ms")
    found = document(*asked, "--seconds", "7", "--keep", str(kept))
    assert found["device"] == "calibrated ext4, mmap"
    assert load(kept).rounds == 8
    assert document(*asked)["rows"] == found["rows"]
    assert seconds == [7.0, 60.0]


def test_an_interrupted_measurement_ends_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = calibrate.Calibrated(made_calibration(snapshot=here()), True)
    monkeypatch.setattr(calibrate, "calibrate", lambda *_, **__: found)
    kept = tmp_path / "disk"
    result = call("--here", str(tmp_path), "--keep", str(kept), *QUICK, "--max-loss", "10ms")
    assert result.exit_code != 0
    assert "chosen" not in result.stdout
    assert load(kept).rounds == 8


def test_the_check_says_by_how_much_the_real_store_misses(run_for_real: list[dict[str, Any]], tmp_path: Path) -> None:
    asked = (*PRESET, "--max-loss", "10ms", "--check", "--check-directory", str(tmp_path), "--check-seconds", "2")
    found = document(*asked, "--body", "300")
    assert run_for_real[0]["directory"] == str(tmp_path)
    assert run_for_real[0]["policy"] == found["chosen"]
    assert (run_for_real[0]["seconds"], run_for_real[0]["record_bytes"]) == (2.0, 422)
    assert found["check"]["meets"] is False
    assert found["check"]["sentence"].endswith(
        "It does not meet the budget: the p99 exceeds the limit by 0.5 ms and the loss exceeds the limit by 2.5 ms."
    )
    assert [finding["code"] for finding in found["findings"]] == ["check-missed"]
    assert "check_put_p99_us" in found["timings"]
    good = document(*asked[:-7], "--max-p99", "3ms", "--max-loss", "13ms", *asked[-5:])
    assert good["check"]["sentence"].endswith("It meets the budget.")
    assert good["findings"] == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([*PRESET, "--max-loss", "10"], "'10' is no time with a unit; write it like 10ms, 500us or 1.5s"),
        ([*PRESET, "--max-loss", "-1ms"], "'-1ms' is no time with a unit"),
        ([*PRESET, "--max-loss", "1ms", "--max-p99", "0us"], "a p99 of at most 0 us is impossible"),
        ([*QUICK, "--max-loss", "1ms"], "name the disk: --device PRESET|FILE for known times, or --here DIR"),
        ([*PRESET, "--max-loss", "1ms", "--here", "."], "name the disk: "),
        ([*PRESET, "--max-loss", "1ms", "--seconds", "9"], "--seconds, --keep and --real-time go with --here"),
        ([*PRESET, "--max-loss", "1ms", "--check-seconds", "9"], "go with --check"),
        ([*PRESET, "--max-loss", "1ms", "--check", "--check-directory", "/no"], "/no is no directory; name another"),
        ([*PRESET, "--max-loss", "1ms", "--any-machine"], "go with a calibration as --device"),
        ([*PRESET, "--max-loss", "1ms", "--validation", "/no"], "cannot read /no/scores.jsonl: No such file"),
        ([*PRESET, "--max-loss", "1ms", "--body", "9000", "--file-size", "8000"], "does not fit a log file"),
        (["--device", "vm-ext5", *QUICK, "--max-loss", "1ms"], "no device 'vm-ext5' (did you mean vm-ext4?)"),
        (["--device", "/dev/null", *QUICK, "--max-loss", "1ms"], "it is no calibration, or it is damaged"),
        (["--here", "/no", *QUICK, "--max-loss", "1ms"], "/no is no directory; name one on the disk"),
    ],
)
def test_misuse_is_refused_in_one_line(arguments: list[str], sentence: str) -> None:
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr.splitlines()[-1]


def test_the_calibration_of_another_machine_is_refused_unless_any_will_do(tmp_path: Path) -> None:
    path = str(tmp_path / "foreign")
    save(made_calibration(snapshot=MADE_MACHINE), path)
    asked = ("--device", path, *QUICK, "--max-loss", "10ms")
    result = call(*asked)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "was measured on another machine (processor made up, here" in result.stderr
    assert [finding["code"] for finding in document(*asked, "--any-machine")["findings"]] == ["other-machine"]


def test_an_interrupt_keeps_the_simulated_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    from tornpage.sim import sweep

    simulated, whole = 0, sweep.simulate

    def stop_at_the_third(point: sweep.Point) -> Any:
        nonlocal simulated
        simulated += 1
        if simulated == 3:
            raise KeyboardInterrupt
        return whole(point)

    monkeypatch.setattr(sweep, "simulate", stop_at_the_third)
    found = document(*PRESET, "--max-loss", "10ms", code=130)
    assert len(found["rows"]) == 2
