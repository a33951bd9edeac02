"""Test a replica over a link: exact times, order, loss, and equal traces of both engines."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.sim.support import ASYNC, MS, scenario
from tornpage.sim.device.device import PRESETS
from tornpage.sim.distributions import Constant, Exponential
from tornpage.sim.experiments.registry import named
from tornpage.sim.experiments.values import Setup, run_experiment
from tornpage.sim.experiments.words import of
from tornpage.sim.fast import run_fast
from tornpage.sim.pair import ACKNOWLEDGEMENT_BYTES, HEADER_BYTES, LINKS, Link, Pair, replicate
from tornpage.sim.run import run

LINK = Link("test", Constant(MS), 1e9)
WOKEN = Pair(LINK, turn=Constant(7), master_round=Constant(5 * MS), append=Constant(10))
TIMES = np.array([10 * MS, 20 * MS, 20 * MS, 50 * MS], np.int64)
SIZES = np.array([1000, 500, 500, 2000], np.int64)
DISK = PRESETS["vm-ext4"]


def test_times_over_an_idle_link_are_exact() -> None:
    found = replicate(WOKEN, 1, TIMES, SIZES)
    wire_ns = np.array([1000, 1000, 1000, 2000]) + HEADER_BYTES
    received = TIMES + 7 + wire_ns + MS + 10
    assert found.received_ns.tolist() == received.tolist()
    assert found.known_ns.tolist() == (received + ACKNOWLEDGEMENT_BYTES + MS).tolist()
    assert found.transfers == 3
    assert (found.durable_ns == np.iinfo(np.int64).max).all()


def test_a_narrow_link_delays_what_comes_next() -> None:
    slow = replace(WOKEN, link=replace(LINK, bytes_per_s=1e5))
    found = replicate(slow, 1, np.array([0, 20], np.int64), np.array([1000, 1000], np.int64))
    assert (np.diff(found.received_ns) >= 10 * MS).all()


def test_rounds_gather_messages() -> None:
    pair = replace(WOKEN, waits=False)
    times = np.arange(1000, dtype=np.int64) * MS // 10
    found = replicate(pair, 1, times, np.full(1000, 100, np.int64))
    assert 19 <= found.transfers <= 22
    waits = found.known_ns - times
    assert 2 * MS < waits.min() <= waits.max() < 8 * MS


def test_what_arrives_while_a_replica_appends_is_one_round() -> None:
    slow = replace(WOKEN, append=Constant(10 * MS))
    found = replicate(slow, 1, np.arange(20, dtype=np.int64) * MS, np.full(20, 10, np.int64))
    assert found.transfers == 20
    assert len(set(found.received_ns.tolist())) == 3


@pytest.mark.parametrize("loss", [0.01, 0.2])
def test_a_lost_segment_delays_everything_after_it(loss: float) -> None:
    times = np.arange(2000, dtype=np.int64) * MS
    clean = replicate(WOKEN, 1, times, np.full(2000, 1000, np.int64))
    lossy = replicate(replace(WOKEN, link=replace(LINK, loss=loss)), 1, times, np.full(2000, 1000, np.int64))
    assert clean.retransmits == 0
    assert lossy.retransmits == pytest.approx(2 * 2000 * loss, rel=0.5)
    assert (np.diff(lossy.received_ns) >= 0).all()
    assert (lossy.known_ns >= clean.known_ns).all()
    assert int((lossy.received_ns - clean.received_ns).max()) >= LINK.retransmit_ns


def test_a_durable_acknowledgement_waits_for_the_disk_of_the_replica() -> None:
    durable = replicate(replace(WOKEN, device=DISK, acknowledge="durable"), 1, TIMES, SIZES)
    received = replicate(replace(WOKEN, device=DISK), 1, TIMES, SIZES)
    assert (durable.known_ns > durable.durable_ns).all()
    assert (durable.durable_ns > durable.received_ns).all()
    assert (received.known_ns < received.durable_ns).all(), "it is on the disk at the next sync of the clock"
    assert int((received.durable_ns - received.received_ns).max()) < 1_100 * MS


@pytest.mark.parametrize(
    "pair",
    [
        WOKEN,
        Pair(LINKS["other zone"], device=DISK),
        Pair(replace(LINKS["same rack"], loss=0.02), device=DISK, acknowledge="durable"),
        Pair(LINKS["loopback"], waits=False),
        Pair(Link("drawn", Exponential(2.0 * MS), 1e6), turn=Exponential(3.0 * MS)),
    ],
)
def test_both_engines_give_the_same_trace(pair: Pair) -> None:
    case = replace(scenario(flush=ASYNC, messages=3_000), replica=pair)
    assert run(case, 7).digest() == run_fast(case, 7).digest()


def test_a_put_waits_only_if_the_master_does() -> None:
    plain = run(scenario(flush=ASYNC, messages=2_000), 3)
    waits = run(replace(plain.scenario, replica=WOKEN), 3)
    copies = run(replace(plain.scenario, replica=replace(WOKEN, waits=False)), 3)
    assert (copies.put_ns == plain.put_ns).all()
    assert (waits.put_ns >= plain.written_ns + 2 * MS).all()
    assert (np.diff(waits.put_ns) >= 0).all()


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [(Link, {"bytes_per_s": 0.0}), (Link, {"loss": 1.0}), (Pair, {"acknowledge": "durable"}),
     (Pair, {"master_round": Constant(0)})],
)  # fmt: skip
def test_an_impossible_pair_is_refused(kind: type, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"impossible|needs a disk|take time"):
        replace(LINK if kind is Link else WOKEN, **wrong)


def test_what_a_second_copy_saves() -> None:
    result = run_experiment(named("second-copy"), Setup(DISK, 1, 0.05), lambda step: None)
    rows = {(row["link"], row["policy"]): row for row in result.rows}
    assert len(rows) == len(result.rows)
    for (link, policy), row in rows.items():
        if "received" in str(policy) or "durable" in str(policy):
            assert row["machine_lost_max"] == 0, (link, policy)
        if policy in ("own disk", "durable there", "own disk and received"):
            assert row["both_lost_max"] == 0, (link, policy)
    slow, quick = (of(rows["same rack", f"no wait, {pause}"], "machine_lost_mean") for pause in ("100 ms", "5 ms"))
    assert slow > quick
    assert of(rows["other region", "received"], "put_p50_us") > 30_000
