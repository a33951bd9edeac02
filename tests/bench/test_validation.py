"""Test the judge of predictions: it accepts a simulated store and sees planted errors.

The rounds here were never measured. Each slice is a simulation on a known device and looks like a driven one. The
results of the calibrating slices, and the predictions from them, can therefore be compared with the truth.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tornpage.bench.calibration.driven import Driven
from tornpage.bench.calibration.load_slices import samples_of
from tornpage.bench.validation.cases import CALIBRATING, HELD_OUT, Cases
from tornpage.bench.validation.causes import INPUTS, causes_of
from tornpage.bench.validation.costs import durable_ns, puts_of, without_stalls
from tornpage.bench.validation.rounds import Round
from tornpage.bench.validation.rows import SHARES, cause_rows, quantile_rows, score_rows, slice_rows
from tornpage.bench.validation.validation import Case, Validation, validate
from tornpage.properties.contract import HarnessError
from tornpage.sim.device.device import PRESETS, DeviceTimes
from tornpage.sim.device.gap_table import GapTable
from tornpage.sim.device.put_table import PutTable
from tornpage.sim.device.samples import PROBES, STATES, Samples
from tornpage.sim.device.stalls import NEVER
from tornpage.sim.distributions import LogNormal
from tornpage.sim.run import run
from tornpage.sim.scenario import Scenario

RNG = np.random.default_rng(11)
TRUTH = replace(
    PRESETS["vm-ext4"],
    sync=LogNormal.from_quantiles(p50_ns=150_000, p99_ns=400_000),
    convert_ns=0,
    wake_ns=0,
    wake=GapTable.of(np.array([100_000]), np.array([55_000])),
    turn=LogNormal(14_000.0, 0.1),
    answering_ns=40_000,
    answer_ns=9_000,
)
PUTS = PutTable.of(
    gap_ns=np.full(500, 100_000),
    lately_ns=np.full(500, 300_000),
    late_ns=RNG.integers(5_000, 20_000, 500),
    took_ns=RNG.integers(30_000, 60_000, 500),
)
NAMES = ("group commit 1000/s", "group commit 2500/s", "timed 10 ms 1 page 1000/s", "pool 200 ms 1000/s")
FEW: Cases = {name: replace(HELD_OUT[name], duration_ns=250_000_000) for name in NAMES}
KNOWN: Cases = {name: replace(case, duration_ns=250_000_000) for name, case in CALIBRATING.items()}
ROUNDS = 4

Fault = Callable[[int, str, Driven], Driven]


def simulated(scenario: Scenario, seed: int, device: DeviceTimes) -> Driven:
    """Return a slice of a store whose durations are those of the truth."""
    trace = run(replace(scenario, device=device, puts=PUTS), seed)
    flushes = trace.flushes[["start_ns", "end_ns", "from_offset", "to_offset"]]
    table = np.array(flushes.tolist(), np.dtype([(name, np.int64) for name in flushes.dtype.names or ()]))
    ends = trace.offset + trace.size
    columns = (trace.arrival_ns, trace.start_ns, trace.written_ns, trace.put_ns, ends)
    return Driven(scenario, seed, *columns, table, table[:0])


def sweeps(number: int) -> Samples:
    """Return probes, and syncs of chosen size, as the truth has them."""
    syncs, probes = [], []
    for state in (0, 1):
        for pages in (1, 2, 4, 8, 64, 1_024):
            for gap_ns in (30_000, 300_000, 3_000_000):
                for took_ns in TRUTH.sync.draw(RNG, 12).tolist():
                    syncs.append((number, 0, state, 0, pages, gap_ns, took_ns + pages * 4 * TRUTH.sync_ns_per_kib))
    for probe in ("touch", "copy", "pwrite", "create", "reserve", "sync_directory"):
        for amount in (4_096, 1 << 20):
            probes.append((number, PROBES.index(probe), 0, 0, amount, 0, 10_000))
    return Samples.of(syncs, probes)


def rounds(fault: Fault, count: int = 2) -> list[Round]:
    made = []
    for number in range(count):
        calibrating, held_out = (
            {
                name: fault(number, name, simulated(scenario, 1_000 * number + place, TRUTH))
                for place, (name, scenario) in enumerate(cases.items(), start)
            }
            for cases, start in ((KNOWN, 0), (FEW, 100))
        )
        loads = Samples.joined(samples_of(one, number) for one in calibrating.values())
        made.append(Round(number, sweeps(number), loads, calibrating, held_out))
    return made


@pytest.fixture(scope="module")
def true_rounds() -> list[Round]:
    return rounds(lambda number, name, driven: driven, ROUNDS)


@pytest.fixture(scope="module")
def validation(true_rounds: list[Round]) -> Validation:
    return validate(true_rounds, {})


def test_a_store_that_is_the_simulator_is_foretold(validation: Validation) -> None:
    assert validation.verdict == "holds"
    assert validation.passed == len(FEW)
    for case in validation.cases:
        assert abs(case.error.p50) < 0.05, case.name
        assert abs(case.error.p90) < 0.08, case.name
        assert abs(case.error.p99) < 0.20, case.name
        assert case.error.ks < 0.08, case.name
        assert abs(case.error.flushes) < 0.05, case.name
    assert validation.tau_p50 == 1


def test_what_calibrating_slices_tell_of_puts_is_what_was_put_in(true_rounds: list[Round]) -> None:
    puts = puts_of([one.calibrating["group commit 1500/s"] for one in true_rounds], NEVER)
    assert (puts.late_ns.min(), puts.took_ns.max()) == pytest.approx((5_000, 60_000), abs=100)
    assert np.median(puts.took_ns) == pytest.approx(45_000, rel=0.03)


def test_a_stall_is_one_among_syncs_of_its_kind() -> None:
    """Syncs into reserved blocks were all taken for stalls.

    The journal of the disk makes them 20 times as slow.
    """
    kinds = [(STATES.index("written"), 100_000)] * 60 + [(STATES.index("reserved"), 2_000_000)] * 40
    slow = [(STATES.index("written"), 1_100_000), (STATES.index("reserved"), 21_000_000)]
    found = Samples.of([(0, 0, state, 0, 1, 0, took_ns) for state, took_ns in kinds + slow])
    assert without_stalls(found).syncs["took_ns"].tolist() == [took_ns for _, took_ns in kinds]


def held_out(change: Callable[[Driven], Driven]) -> Fault:
    return lambda number, name, driven: change(driven) if name in FEW else driven


def test_a_store_that_takes_a_third_longer_than_foretold_breaks_the_verdict_and_the_error_has_its_sign() -> None:
    slower = held_out(lambda one: replace(one, answered_ns=one.due_ns + one.latency_ns * 4 // 3))
    found = validate(rounds(slower), {})
    assert (found.verdict, found.passed) == ("broken", 0)
    assert [case.error.p50 for case in found.cases] == pytest.approx([-0.25] * len(FEW), abs=0.05)


def test_rounds_that_differ_among_themselves_raise_the_floor_which_forgives_and_is_told() -> None:
    def odd_ones_wait(number: int, name: str, one: Driven) -> Driven:
        return replace(one, answered_ns=one.answered_ns + 40_000 * (number % 2)) if name in FEW else one

    found = validate(rounds(odd_ones_wait), {})
    assert all(case.floor.p50 > 0.05 for case in found.cases)
    assert all(case.passes for case in found.cases)
    assert not all(case.passes_without_floor for case in found.cases)


def test_calibrating_loads_that_differ_beyond_all_use_leave_the_verdict_unknown() -> None:
    def odd_ones_wait(number: int, name: str, one: Driven) -> Driven:
        timed = "timed" in name and name not in FEW
        return replace(one, answered_ns=one.due_ns + one.latency_ns * (1 + number % 2)) if timed else one

    found = validate(rounds(odd_ones_wait), {})
    assert found.is_noisy
    assert found.verdict == "unknown"


def test_a_bound_is_the_fixed_one_or_the_floor(validation: Validation) -> None:
    case = validation.cases[0]

    def passes(p50: float, floor: float) -> bool:
        changed: Case = replace(case, error=replace(case.error, p50=p50), floor=replace(case.floor, p50=floor))
        return changed.passes

    assert passes(0.049, 0.0)
    assert passes(-0.049, 0.0)
    assert not passes(0.051, 0.0)
    assert passes(0.19, 0.2)
    assert not passes(-0.21, 0.2)


def test_the_error_of_slow_puts_is_attributed_to_the_puts() -> None:
    name = "timed 10 ms 1 page 1000/s"

    def slower(number: int, case: str, one: Driven) -> Driven:
        late = one.written_ns + (one.written_ns - one.began_ns)
        return replace(one, written_ns=late, answered_ns=late) if case == name else one

    measured = rounds(slower)
    found = validate(measured, {})
    only = replace(found, cases=tuple(case for case in found.cases if case.name == name))
    (causes,) = causes_of(only, measured, {})
    parts = {cause: causes.part(cause, "p50") for cause in (*INPUTS, "rest")}
    assert causes.error.p50 < -0.3
    assert parts["puts"] == pytest.approx(causes.error.p50, abs=0.05)
    assert sum(part for part in parts.values() if part is not None) == pytest.approx(causes.error.p50)
    assert cause_rows([causes])[0]["puts_p50"] == parts["puts"]


def test_one_round_has_no_floor_and_is_refused(true_rounds: list[Round]) -> None:
    with pytest.raises(HarnessError, match="at least 2"):
        validate(true_rounds[:1], {})


def test_a_slice_whose_arrivals_are_not_those_of_the_simulator_is_a_fault_of_the_harness(
    true_rounds: list[Round],
) -> None:
    one = true_rounds[0]
    name = NAMES[0]
    late = replace(one.held_out[name], seed=one.held_out[name].seed + 1)
    with pytest.raises(HarnessError, match="same puts"):
        validate([replace(one, held_out={**one.held_out, name: late}), true_rounds[1]], {})


def test_a_message_that_no_flush_covered_was_never_durable(true_rounds: list[Round]) -> None:
    one = true_rounds[0].held_out["timed 10 ms 1 page 1000/s"]
    cut = replace(one, flushes=one.flushes[:3])
    covered = int(one.flushes["to_offset"][2])
    assert ((durable_ns(cut) < 1 << 62) == (cut.end_offset <= covered)).all()


def test_rows_have_what_a_figure_needs(validation: Validation, true_rounds: list[Round]) -> None:
    scores, quantiles = score_rows(validation), list(quantile_rows(validation))
    assert [row["case"] for row in scores] == list(NAMES)
    assert len(quantiles) == len(NAMES) * len(SHARES)
    for row in quantiles:
        assert min(row["measured_us"], row["predicted_us"], row["even_us"], row["odd_us"]) > 0
    assert len(list(slice_rows(true_rounds))) == ROUNDS * (len(CALIBRATING) + len(FEW))


def test_no_held_out_case_has_rate_and_flush_of_a_calibrating_one() -> None:
    def known(cases: Cases) -> set[tuple[object, object, object]]:
        return {(case.flush, case.allocation.warm_up, case.workload) for case in cases.values()}

    assert not known(CALIBRATING) & known(HELD_OUT)
    calibrated_rates = {case.workload.rate_per_s for case in CALIBRATING.values()}  # type: ignore[union-attr]
    assert all(
        case.workload.rate_per_s not in calibrated_rates  # type: ignore[union-attr]
        for case in HELD_OUT.values()
        if case.answers_after_flush
    )
    assert len(HELD_OUT) >= 10
