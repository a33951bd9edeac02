"""Scenarios drawn by Hypothesis: small files, odd sizes, and coinciding times."""

from hypothesis import strategies as st

from tests.sim.support import MS, syncs
from tornpage.impl.config.policy import AllocationPolicy, FlushDiskType, FlushPolicy, WarmUp
from tornpage.sim.device.device import DeviceTimes
from tornpage.sim.device.gap_table import GapTable
from tornpage.sim.device.sync_table import SyncTable, layer_of
from tornpage.sim.distributions import NO_TIME, Constant, Distribution, Exponential, LogNormal
from tornpage.sim.scenario import Scenario
from tornpage.sim.workload import ClosedLoop, OnOffBursts, OpenLoad, OpenPoisson, Sizes

__all__ = ["scenarios"]

MADE = syncs(5, 500)
MEASURED = SyncTable.of(
    layer_of(syncs(1, 2_000), syncs(2, 0), what="written"),
    layer_of(syncs(3, 2_000), syncs(4, 100, times=3), what="new"),
)
GAPS = GapTable.of(MADE["gap_ns"], MADE["took_ns"] // 10)
LONGER_GAPS = GapTable.of(MADE["gap_ns"], MADE["took_ns"] // 5)


def durations() -> st.SearchStrategy[Distribution]:
    return st.one_of(
        st.one_of(st.just(0), st.just(MS), st.integers(0, 3 * MS)).map(Constant),
        st.floats(1e3, 3e6).map(Exponential),
        st.tuples(st.floats(1e3, 1e6), st.floats(0.1, 1.5)).map(lambda pair: LogNormal(*pair)),
    )


def open_loads(sizes: Sizes) -> st.SearchStrategy[OpenLoad]:
    rates, spans = st.floats(50.0, 50_000.0), st.integers(1, 20 * MS)
    # A burst of a nanosecond has no message for hours, in which a flusher looks millions of times.
    bursts = st.integers(MS // 2, 20 * MS)
    return st.one_of(
        rates.map(lambda rate: OpenPoisson(rate, sizes)),
        st.builds(OnOffBursts, rates, bursts, spans, st.just(sizes), st.one_of(st.just(0.0), rates)),
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    costs = st.one_of(st.just(0), st.integers(0, 200_000))
    device = DeviceTimes(
        name="drawn",
        sync=draw(durations()),
        sync_ns_per_kib=draw(st.integers(0, 2_000)),
        convert_ns=draw(costs),
        put_ns=draw(costs),
        copy_ns_per_kib=draw(st.integers(0, 2_000)),
        touch_page_ns=draw(st.integers(0, 5_000)),
        read_ahead_bytes=draw(st.sampled_from([0, 5_000, 1 << 15])),
        read_ahead_stall=draw(durations()),
        create_ns=draw(st.one_of(st.just(0), st.just(MS), st.integers(0, 20 * MS))),
        wake_ns=draw(st.one_of(st.just(0), st.integers(0, 50_000))),
        wake=draw(st.sampled_from([None, GAPS])),
        put=draw(st.sampled_from([None, GAPS])),
        waiting_put=draw(st.sampled_from([None, LONGER_GAPS])),
        turn=draw(st.one_of(st.just(NO_TIME), durations())),
        answering_ns=draw(costs),
        answer_ns=draw(costs),
        measured=draw(st.sampled_from([None, MEASURED])),
    )
    smallest = draw(st.integers(1, 3000))
    sizes = Sizes(smallest, draw(st.integers(smallest, 4000)))
    return Scenario(
        flush=FlushPolicy(
            draw(st.sampled_from(FlushDiskType)),
            draw(st.integers(1, 100)),
            draw(st.integers(0, 6)),
            draw(st.integers(0, 500)),
            draw(st.booleans()),
        ),
        allocation=AllocationPolicy(draw(st.integers(0, 3)), draw(st.sampled_from(WarmUp)), draw(st.integers(1, 4))),
        device=device,
        workload=draw(
            st.one_of(
                open_loads(sizes),
                st.tuples(st.integers(1, 20), durations()).map(lambda pair: ClosedLoop(pair[0], sizes, pair[1])),
            )
        ),
        file_bytes=draw(st.integers(4008, 60_000)),
        messages=draw(st.integers(1, 300)),
    )
