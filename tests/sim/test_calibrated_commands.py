"""Test `tornpage sim calibrate`, and its file as a device of `sim run` and `sim sweep`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.sim.made_samples import MADE_MACHINE, made_calibration
from tornpage.bench.calibration import calibrate
from tornpage.bench.calibration.snapshot import machine_snapshot
from tornpage.cli.simulating.sim import command
from tornpage.outcomes.experiments import catalogue, chosen, disk_of
from tornpage.sim.device.calibration_file import load, save

SMALL = ("--flush", "sync", "--messages", "500", "--json")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


def document(*arguments: str) -> dict[str, Any]:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def here(**more: float) -> Mapping[str, str | int | float]:
    return {**machine_snapshot("."), "file_system": "ext4", "cpu_pressure_share": 0.0, "measured_s": 9.0, **more}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("calibration") / "disk"
    save(made_calibration(snapshot=here()), path)
    return str(path)


def test_a_calibration_is_a_device_of_run_and_sweep(file: str) -> None:
    run = document("run", "--device", file, *SMALL)
    assert run["scenario"]["device"] == "calibrated ext4, mmap"
    assert run["findings"] == []
    assert run["figures"]["put_p50_us"] != document("run", *SMALL)["figures"]["put_p50_us"]
    other = document("run", "--device", file, "--device-mode", "pwrite", *SMALL)
    assert other["scenario"]["device"] == "calibrated ext4, pwrite"
    swept = document("sweep", "--device", file, "--device", "vm-ext4", "--rate", "1000", *SMALL)
    assert {row["device"] for row in swept["rows"]} == {"calibrated ext4, mmap", "vm-ext4"}


def test_a_calibration_is_a_device_of_experiments_and_the_frontier(file: str, tmp_path: Path) -> None:
    asked = ["--effort", "0.002", "--device", file, "--device-mode", "pwrite"]
    found = document("experiment", "stalls", *asked, "--seed", "7", "--json")
    assert found["device"] == "calibrated ext4, pwrite"
    preset = document("experiment", "stalls", "--effort", "0.002", "--seed", "7", "--json")
    assert found["results"]["stalls"]["rows"] != preset["results"]["stalls"]["rows"]
    caption = found["results"]["stalls"]["caption"]
    options = f"--effort 0.002 --device {file} --device-mode pwrite --seed 7"
    assert caption["command"] == f"tornpage sim experiment stalls {options}"
    assert "device calibrated ext4, pwrite (given by its user)" in caption["source"]
    front = document("frontier", "--kills", "0", "--crashes", "1", *asked, "--json")
    assert front["device"] == "calibrated ext4, pwrite"


def test_an_experiment_on_the_law_of_a_sync_needs_a_preset(file: str) -> None:
    result = call("experiment", "slow-disk", "--device", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "slow-disk changes the law of a sync, and a calibration has none; name a preset" in result.stderr
    disk = disk_of(file)
    assert {one.name for one in catalogue()} - {one.name for one in chosen([], everything=True, disk=disk)} == {
        "slow-disk"
    }
    assert not [one for one in catalogue() if not disk_of("ebs-gp3").allows(one)]


def test_noise_is_printed_wherever_a_calibration_is_used(tmp_path: Path) -> None:
    path = str(tmp_path / "noisy")
    save(made_calibration(snapshot=here(cpu_pressure_share=0.5)), path)
    found = document("experiment", "stalls", "--effort", "0.002", "--device", path, "--json")
    assert [finding["code"] for finding in found["findings"]] == ["noisy-calibration"]
    for kind in ("run", "sweep"):
        found = document(kind, "--device", path, "--rate", "1000", *SMALL)
        assert [finding["code"] for finding in found["findings"]] == ["noisy-calibration"]
        text = call(kind, "--device", path, "--rate", "1000", *SMALL[:-1]).stdout
        assert "calibrated ext4, mmap (noisy)" in text
        assert "processes waited for a processor 50% of the time" in text


def test_the_calibration_of_another_machine_is_refused_unless_any_will_do(tmp_path: Path) -> None:
    path = str(tmp_path / "foreign")
    save(made_calibration(snapshot=MADE_MACHINE), path)
    result = call("run", "--device", path, *SMALL)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "was measured on another machine (processor made up, here" in result.stderr
    assert "calibrate here, or give --any-machine" in result.stderr
    found = document("run", "--device", path, "--any-machine", *SMALL)
    assert [finding["code"] for finding in found["findings"]] == ["other-machine"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "--device", "vm-ext5"], "no device 'vm-ext5' (did you mean vm-ext4?); there are vm-ext4, plp-nvme"),
        (["run", "--device", "/dev/null"], "it is no calibration, or it is damaged; `tornpage sim calibrate` makes"),
        (["run", "--device", "."], "cannot read --device .: Is a directory"),
        (["run", "--any-machine"], "--device-mode and --any-machine go with a calibration as --device"),
        (["sweep", "--device-mode", "mmap"], "go with a calibration as --device"),
        (["calibrate", "/proc/nonexistent", "--out", "x"], "/proc/nonexistent is no directory; name one on the disk"),
        (["calibrate", ".", "--out", "."], "--out . is a directory; name a file"),
        (["calibrate", ".", "--out", ""], "--out '' names no file; name one"),
        (["calibrate", ".", "--out", "disk/"], "--out 'disk/' names no file; name one"),
        (["calibrate", ".", "--out", "/dev/null"], "--out /dev/null exists; name another file, or give"),
        (["calibrate", ".", "--out", "/proc/nonexistent/x"], "cannot write to /proc/nonexistent; name another --out"),
        (["calibrate", "/dev/shm", "--out", "calibration.of.memory"], "is on tmpfs, in memory"),
    ],
)
def test_what_is_impossible_is_refused_in_one_line(arguments: list[str], sentence: str) -> None:
    result = call(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("tornpage: ")
    assert result.stderr.count("\n") == 1
    assert sentence in result.stderr


def stand_in(monkeypatch: pytest.MonkeyPatch, *, interrupted: bool, **snapshot: float) -> None:
    found = calibrate.Calibrated(made_calibration(snapshot=here(**snapshot)), interrupted)
    monkeypatch.setattr(calibrate, "calibrate", lambda *_, **__: found)


def test_calibrate_writes_a_file_and_says_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch, interrupted=False)
    out = tmp_path / "disk"
    found = document("calibrate", str(tmp_path), "--out", str(out), "--json")
    assert (found["command"], found["verdict"], found["findings"]) == ("sim calibrate", None, [])
    assert found["figures"]["rounds"] == 8
    assert found["figures"]["is_noisy"] == 0
    assert found["figures"]["sync_mmap_reserved_1_page_p50_us"] > 10
    assert set(found["timings"]) == set(found["figures"])
    assert found["snapshot"]["file_system"] == "ext4"
    assert load(out).rounds == 8
    text = call("calibrate", str(tmp_path), "--out", str(out), "--overwrite").stdout
    assert "8 rounds, 5,120 syncs in 9 s on ext4" in text
    assert "noisy" not in text


def test_a_noisy_or_interrupted_calibration_is_kept_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, interrupted=True, cpu_pressure_share=0.3)
    result = call("calibrate", str(tmp_path), "--out", str(tmp_path / "disk"))
    assert result.exit_code == 130
    assert "noisy: processes waited for a processor 30% of the time (limit 20%)" in result.stdout
    assert load(tmp_path / "disk").is_noisy


def test_real_time_that_the_system_refuses_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.sched_setscheduler", refused)
    result = call("calibrate", str(tmp_path), "--out", str(tmp_path / "x"), "--real-time")
    assert result.exit_code == 2
    assert "--real-time needs the right to real-time scheduling" in result.stderr
