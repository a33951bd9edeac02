"""Links of a Raft group: those of a pair, with a spread of their latencies."""

from dataclasses import replace

from tornpage.sim.distributions import LogNormal
from tornpage.sim.pair import Link

__all__ = ["P99_OF_P50", "jittered"]

P99_OF_P50 = 1.5
"""The 99th percentile of a latency in units of its median. General knowledge, not a measurement."""


def jittered(link: Link) -> Link:
    """Return a link with a spread, so that the members of a quorum differ."""
    median_ns = link.latency.mean_ns
    return replace(link, latency=LogNormal.from_quantiles(p50_ns=median_ns, p99_ns=P99_OF_P50 * median_ns))
