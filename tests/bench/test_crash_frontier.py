"""Compare real crashes with simulated ones: losses by power and by kills.

A power loss takes what the simulator predicts, a kill what was not committed.
"""

from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tornpage.bench.crashes import process_kills
from tornpage.bench.crashes.frontier import FILE_BYTES, REAL, SIMULATED, caption, crash_frontier
from tornpage.bench.crashes.policies import MESSAGE, store_config
from tornpage.bench.crashes.power_losses import Loss, power_losses
from tornpage.bench.crashes.process_kills import Killed, kill_one
from tornpage.bench.experiments import EXPERIMENTS
from tornpage.bench.figures import file_system_of
from tornpage.properties.contract import HarnessError
from tornpage.properties.program.hand_driven import HandDriven
from tornpage.sim.device.device import PRESETS
from tornpage.sim.experiments.frontier import loss_row
from tornpage.sim.experiments.policies import POLICIES, RECORD_BYTES, StorePolicy
from tornpage.sim.experiments.values import Row, Setup, run_experiment
from tornpage.sim.results.crashes import crash_moments, losses

SETUP = Setup(PRESETS["vm-ext4"], seed=3, effort=0.05)


def both(policy: StorePolicy, crashes: int = 8) -> tuple[list[Loss], "np.ndarray[tuple[int], np.dtype[np.void]]"]:
    """Return the losses of the same crashes in the real store and in the simulated one."""
    trace = SETUP.trace(policy.scenario(SETUP.device, 1_000.0, duration_ns=3 * 10**8, file_bytes=FILE_BYTES))
    moments = crash_moments(trace, crashes, seed=1)
    return power_losses(policy, trace.arrival_ns, moments.tolist(), FILE_BYTES), losses(trace, moments)


def test_a_power_loss_takes_from_the_real_store_what_it_takes_from_the_simulated_one() -> None:
    real, simulated = both(POLICIES["async 100 ms"])
    counts = [loss.messages for loss in real]
    assert sum(counts) > 100
    assert (
        np.abs(np.array(counts) - simulated["power_messages"]).max() <= 4
    )  # a ms of puts, and the puts that the sync delays
    assert [loss.size_bytes for loss in real] == [RECORD_BYTES * count for count in counts]
    ages_ms = simulated["power_age_ns"] / 1e6
    assert np.abs(np.array([loss.age_ms for loss in real]) - ages_ms).max() < 5
    assert [loss.answered for loss in real] == counts


def test_a_shorter_interval_loses_less_and_group_commit_nothing_that_was_answered() -> None:
    timed, _ = both(POLICIES["async 10 ms"])
    assert 0 < sum(loss.messages for loss in timed) < 8 * 30
    sync, _ = both(POLICIES["sync"], crashes=4)
    assert [loss.messages for loss in sync] == [0] * 4


def test_a_store_whose_interval_is_not_the_simulated_one_is_seen() -> None:
    """Planted: the real store flushes every 50 ms, the simulated one every 100 ms."""
    policy = POLICIES["async 100 ms"]
    trace = SETUP.trace(policy.scenario(SETUP.device, 1_000.0, duration_ns=3 * 10**8, file_bytes=FILE_BYTES))
    moments = crash_moments(trace, 8, seed=1)
    hasty = replace(policy, flush=replace(policy.flush, flush_interval_commit_log=50))
    real = power_losses(hasty, trace.arrival_ns, moments.tolist(), FILE_BYTES)
    assert np.mean([loss.messages for loss in real]) < 0.8 * losses(trace, moments)["power_messages"].mean()


def test_a_put_that_was_told_of_no_disk_is_not_counted_as_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """FLUSH_DISK_TIMEOUT promises nothing: a loss of such a message breaks no promise."""
    real = HandDriven.wait

    def late(own: HandDriven, answer: "Future[Any]", *, timeout_ms: int) -> bool:
        return own._service.name != "group-commit" and real(own, answer, timeout_ms=timeout_ms)

    monkeypatch.setattr(HandDriven, "wait", late)
    with pytest.raises(HarnessError, match="a put was answered FLUSH_DISK_TIMEOUT"):
        power_losses(POLICIES["sync"], np.array([10**6, 2 * 10**6]), [3 * 10**6], FILE_BYTES)


def test_the_settings_of_the_real_store_are_those_of_the_policy() -> None:
    config = store_config(POLICIES["pool + async 500 ms"], file_bytes=FILE_BYTES)
    assert (config.transient_store_pool_enable, config.transient_store_pool_size) == (True, 5)
    assert config.mapped_file_size_commit_log == FILE_BYTES
    assert len(MESSAGE.body or b"") < RECORD_BYTES
    assert not store_config(POLICIES["woken at 4 pages"], file_bytes=FILE_BYTES).flush_commit_log_timed


def test_every_experiment_has_its_own_name() -> None:
    names = [one.name for one in EXPERIMENTS]
    assert len(set(names)) == len(names)
    assert "crash-frontier" in names


def losing(policy: str, crash: str, messages: int, answered: int = 0, file_system: str = "ext4") -> Row:
    row = loss_row(
        policy, crash, put_p99_us=5.0, messages=[messages], size_bytes=[1024], ages_ms=[2.0], answered=[answered]
    )
    return row | {"file_system": file_system}


def test_the_caption_tells_how_far_off_the_simulation_is_and_who_lost_what() -> None:
    rows = [losing("a", SIMULATED["power"], 100), losing("a", REAL["power"], 130, answered=130)]
    assert "within 30.0 % (furthest: a, +30.0 %)" in caption(rows)
    assert "Every real store lost acknowledged messages" in caption(rows)
    near = [rows[0], losing("a", REAL["power"], 99), losing("a", REAL["kill"], 0)]
    assert "within 1.0 %" in caption(near)
    assert "Of the real stores a lost no acknowledged message" in caption(near)
    assert "1 kill of a lost nothing" in caption(near)
    killed = [*near[:2], losing("a", SIMULATED["kill"], 7), losing("a", REAL["kill"], 9, answered=9)]
    assert "Kills lost 9 messages from a on average of 1 (7 simulated)" in caption(killed)
    assert "No policy lost enough" in caption([losing("a", SIMULATED["power"], 3), losing("a", REAL["power"], 5)])


def test_the_caption_tells_that_a_latency_is_that_of_memory() -> None:
    """Where TMPDIR is in memory, its p99 of group commit looked like that of a disk."""
    power = [losing("sync", SIMULATED["power"], 0), losing("sync", REAL["power"], 0)]
    kill = losing("sync", REAL["kill"], 0, file_system="tmpfs")
    assert "The killed stores lay on tmpfs, in memory, where a sync costs nothing." in caption([*power, kill])
    assert "in memory" not in caption([*power, losing("sync", REAL["kill"], 0)])


def test_rows_of_killed_processes_say_where_their_files_were(monkeypatch: pytest.MonkeyPatch) -> None:
    killed = Killed(Loss(0, 0, 0.0, 0), 60, (5_000, 7_000))
    monkeypatch.setattr("tornpage.bench.crashes.frontier.kill_one", lambda *_, **__: killed)
    monkeypatch.setattr("tornpage.bench.crashes.frontier.POLICIES", {"sync": POLICIES["sync"]})
    found = run_experiment(crash_frontier(crashes=2, kills=1, directory="/dev/shm"), SETUP, lambda step: None)
    named = {row["crash"]: row["file_system"] for row in found.rows}
    assert named == {SIMULATED["power"]: "", REAL["power"]: "", REAL["kill"]: file_system_of("/dev/shm")}
    assert found.rows[-1]["put_p99_us"] == pytest.approx(6.98)


@pytest.mark.deep
def test_without_kills_equal_seeds_give_equal_rows() -> None:
    runs = [run_experiment(crash_frontier(crashes=4, kills=0), SETUP, lambda step: None) for _ in range(2)]
    assert runs[0].rows == runs[1].rows
    assert {row["crash"] for row in runs[0].rows} == {*SIMULATED.values(), REAL["power"]}


@pytest.mark.deep
@pytest.mark.parametrize("name", ["sync", "async 500 ms", "pool + async 500 ms"])
def test_a_killed_process_leaves_what_was_in_the_page_cache(
    name: str, tmp_path: "object", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_kills, "LIVES_S", (0.2, 0.4))
    killed = kill_one(POLICIES[name], rate_per_s=1_000.0, file_bytes=FILE_BYTES, seed=1, directory=str(tmp_path))
    assert killed.puts > 10
    assert killed.latencies_ns
    if POLICIES[name].pool is None:
        assert killed.loss == Loss(0, 0, 0.0, 0)
    else:
        assert killed.loss.size_bytes == killed.loss.messages * RECORD_BYTES
        assert killed.loss.messages < killed.puts
