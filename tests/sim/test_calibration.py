"""Test calibrations: use of samples, noise, origin, and damaged files."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.made_samples import MADE_MACHINE, made_calibration, made_samples
from tests.sim.support import US
from tornpage.sim.device.calibration import Calibration
from tornpage.sim.device.calibration_file import BadCalibration, load, save
from tornpage.sim.device.gap_table import GapTable
from tornpage.sim.device.samples import MODES, PROBES, STATES, Samples
from tornpage.sim.device.sync_table import TooFewSamples


def middle_us(table: GapTable | None, gap_ns: int) -> float:
    assert table is not None
    return table.took_ns(1 << 31, gap_ns) / US


def without(samples: Samples, probe: str) -> Samples:
    return replace(samples, probes=samples.probes[samples.probes["probe"] != PROBES.index(probe)])


def test_samples_become_the_times_of_a_device() -> None:
    device = made_calibration().device()
    assert device.name == "calibrated ext4, mmap"
    assert device.touch_page_ns == 700
    assert device.read_ahead_bytes == 8 << 20
    assert device.read_ahead_stall.mean_ns == 600_000
    assert (device.create_ns, device.sync_directory_ns) == (66_000, 130_000)
    assert device.reserve_ns_per_gib == 60_000 * 16
    assert (device.answering_ns, device.answer_ns, device.turn.mean_ns) == (20_000, 8_000, 50_000)
    assert device.copy_ns_per_kib == 68
    assert device.commit_ns + 4 * device.commit_ns_per_kib == pytest.approx(5_000, abs=10)
    assert device.commit_ns + 1024 * device.commit_ns_per_kib == pytest.approx(90_000, abs=1_000)
    assert middle_us(device.put, 10_000) == pytest.approx(10, abs=0.2)
    assert middle_us(device.put, 2_000_000) == pytest.approx(30, abs=0.2)
    assert middle_us(device.waiting_put, 2_000_000) == pytest.approx(35, abs=0.2)
    assert middle_us(device.wake, 2_000_000) == pytest.approx(60 + 40 - 35, abs=0.2)


@pytest.mark.parametrize("probe", sorted(set(PROBES) - {"populate"}))
def test_what_is_missing_is_named(probe: str) -> None:
    with pytest.raises(TooFewSamples, match=f"no '{probe}' was measured"):
        Calibration.from_samples(without(made_samples(), probe), MADE_MACHINE)


@pytest.mark.parametrize("state", ["reserved", "written"])
def test_blocks_of_a_state_that_was_not_measured_are_named(state: str) -> None:
    samples = made_samples()
    rows = samples.syncs[samples.syncs["state"] != STATES.index(state)]
    with pytest.raises(TooFewSamples, match=f"0 syncs of chosen size were measured for mmap, {state} blocks"):
        Calibration.from_samples(replace(samples, syncs=rows), MADE_MACHINE)


def test_one_mode_is_enough_and_the_other_is_then_refused() -> None:
    samples = made_samples()
    rows = samples.syncs[samples.syncs["mode"] == MODES.index("mmap")]
    found = Calibration.from_samples(replace(samples, syncs=rows), MADE_MACHINE)
    assert found.modes == ("mmap",)
    with pytest.raises(TooFewSamples, match="pwrite"):
        found.device("pwrite")


def test_longer_syncs_make_a_slower_device() -> None:
    samples = made_samples()
    slower = samples.syncs.copy()
    slower["took_ns"] *= 3
    fast, slow = (
        Calibration.from_samples(replace(samples, syncs=rows), MADE_MACHINE).device()
        for rows in (samples.syncs, slower)
    )
    assert fast.measured is not None
    assert slow.measured is not None
    assert fast.measured != slow.measured
    for draw in (0, 1 << 31, (1 << 32) - 1):
        both = [
            device.measured.took_ns(draw, pages=2, gap_ns=30_000, reserved_only=True)  # type: ignore[union-attr]
            for device in (fast, slow)
        ]
        assert both[1] == pytest.approx(3 * both[0], rel=0.01)


def test_like_rounds_are_not_noisy() -> None:
    found = made_calibration()
    assert found.noise == ""
    assert all(floor.ks < 0.1 for floor in found.floors)
    assert len(found.floors) == len(MODES) * len(STATES)
    assert {floor.syncs for floor in found.floors} == {800}


@pytest.mark.parametrize("what", ["odd rounds are slower", "a busy machine", "one round"])
def test_noise_is_told_and_stands_in_the_name_of_the_device(what: str) -> None:
    samples, snapshot = made_samples(), dict(MADE_MACHINE)
    syncs = samples.syncs.copy()
    if what == "odd rounds are slower":
        syncs["took_ns"] = np.where(syncs["round"] % 2, syncs["took_ns"] * 3 // 2, syncs["took_ns"])
        sentence = "even and odd of 8 rounds differ"
    elif what == "one round":
        syncs["round"] = 0
        sentence = "even and odd of 1 rounds differ (KS 1.00"
    else:
        snapshot["cpu_pressure_share"] = 0.35
        sentence = "processes waited for a processor 35% of the time (limit 20%)"
    found = Calibration.from_samples(replace(samples, syncs=syncs), snapshot)
    assert found.is_noisy
    assert sentence in found.noise
    assert found.device().name.endswith("(noisy)")
    if what == "odd rounds are slower":
        assert all(0.3 < floor.p50 < 0.7 for floor in found.floors)


def test_another_machine_is_told_by_what_differs() -> None:
    found = made_calibration()
    assert found.strangeness(MADE_MACHINE) == ""
    assert found.strangeness({**MADE_MACHINE, "file_system": "xfs"}) == ""
    assert found.strangeness({**MADE_MACHINE, "cores": 4}) == "cores 2, here 4"
    assert "kernel Linux 0, here unknown" in found.strangeness({})


def test_a_saved_calibration_is_the_same_when_it_is_loaded(tmp_path: Path) -> None:
    made = made_calibration()
    save(made, tmp_path / "a")
    save(made, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    found = load(tmp_path / "a")
    assert found.samples.syncs.tobytes() == made.samples.syncs.tobytes()
    assert found.samples.probes.tobytes() == made.samples.probes.tobytes()
    assert dict(found.snapshot) == dict(MADE_MACHINE)
    assert found.device() == made.device()


def test_a_save_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", fails)
    with pytest.raises(OSError, match="No space"):
        save(made_calibration(), tmp_path / "a")
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("calibration") / "a"
    save(made_calibration(), path)
    return path


@settings(max_examples=80, deadline=None)
@given(is_cut=st.booleans(), place=st.integers(0, 1 << 20), flipped=st.integers(1, 255))
def test_a_damaged_file_is_refused_or_reads_the_same(
    stored: Path, tmp_path_factory: pytest.TempPathFactory, is_cut: bool, place: int, flipped: int
) -> None:
    damaged = bytearray(stored.read_bytes())
    at = place % len(damaged)
    if is_cut:
        del damaged[at:]
    else:
        damaged[at] ^= flipped
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(damaged)
    try:
        found = load(path)
    except BadCalibration:
        return
    assert found.samples.syncs.tobytes() == made_samples().syncs.tobytes()
    assert found.samples.probes.tobytes() == made_samples().probes.tobytes()


def test_each_damaged_byte_near_the_head_of_a_member_is_seen(stored: Path, tmp_path: Path) -> None:
    # Regression: NumPy compares no checksum of the data that it reads, and one flipped bit changed a sync.
    first = stored.read_bytes().index(b"PK\3\4", 1)
    path = tmp_path / "damaged"
    for at in range(first + 60, first + 460):
        damaged = bytearray(stored.read_bytes())
        damaged[at] ^= 8
        path.write_bytes(damaged)
        with pytest.raises(BadCalibration):
            load(path)


@pytest.mark.parametrize(
    ("signature", "away", "byte"),
    [(b"PK\1\2", 8, 1), (b"PK\1\2", 10, 12), (b"PK\1\2", 10, 14), (b"PK\1\2", 42, 0xFF), (b"PK\5\6", 16, 0xFF)],
    ids=["encrypted", "bz2", "lzma", "member elsewhere", "directory elsewhere"],
)
def test_a_damaged_directory_of_the_archive_is_refused(
    stored: Path, tmp_path: Path, signature: bytes, away: int, byte: int
) -> None:
    damaged = bytearray(stored.read_bytes())
    damaged[damaged.rindex(signature) + away] = byte
    (tmp_path / "damaged").write_bytes(damaged)
    with pytest.raises(BadCalibration, match="damaged"):
        load(tmp_path / "damaged")


def rewritten(path: Path, change: Callable[[dict[str, np.ndarray]], None]) -> None:
    save(made_calibration(), path)
    with np.load(path) as archive:
        arrays = dict(archive)
    change(arrays)
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)


def header(arrays: dict[str, np.ndarray], **said: object) -> None:
    kept = json.loads(arrays["header"].tobytes()) | said
    arrays["header"] = np.frombuffer(json.dumps(kept).encode(), np.uint8)


def put(arrays: dict[str, np.ndarray], name: str, field: str, value: int) -> None:
    arrays[name] = arrays[name].copy()
    arrays[name][field][5] = value


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda arrays: header(arrays, version=2), "it has version 2, this tornpage reads 1; calibrate again"),
        (lambda arrays: header(arrays, format="something else"), "it is no calibration"),
        (lambda arrays: header(arrays, snapshot=[1]), "its snapshot of the machine is damaged"),
        (lambda arrays: header(arrays, snapshot={"cores": None}), "its snapshot of the machine is damaged"),
        (lambda arrays: arrays.pop("probes"), "it is no calibration"),
        (lambda arrays: arrays.update(syncs=np.zeros(9)), "its syncs have other columns"),
        (lambda arrays: put(arrays, "syncs", "took_ns", -1), "its syncs have an impossible took_ns"),
        (lambda arrays: put(arrays, "probes", "took_ns", 1 << 61), "its probes have an impossible took_ns"),
        (lambda arrays: put(arrays, "syncs", "mode", len(MODES)), "its syncs have an impossible mode"),
        (lambda arrays: put(arrays, "probes", "probe", len(PROBES)), "its probes have an impossible probe"),
        (lambda arrays: arrays.update(syncs=arrays["syncs"][:5]), "too little was measured: 0 syncs of chosen size"),
    ],
)
def test_a_foreign_file_is_refused_with_the_reason(
    tmp_path: Path, change: Callable[[dict[str, np.ndarray]], None], sentence: str
) -> None:
    rewritten(tmp_path / "a", change)
    with pytest.raises(BadCalibration, match=sentence.replace("(", r"\(")):
        load(tmp_path / "a")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04", b"\x93NUMPY\x01\x00"])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(BadCalibration, match="it is no calibration"):
        load(tmp_path / "a")
