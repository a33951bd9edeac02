"""All experiments of the simulator, in the order of a page.

Experiments that also measure the real store are in `bench`.
"""

from collections.abc import Sequence
from difflib import get_close_matches

from tornpage.sim.experiments.consumer_window import CONSUMER_WINDOW
from tornpage.sim.experiments.failover import FAILOVER
from tornpage.sim.experiments.frontier import FRONTIER
from tornpage.sim.experiments.knee import KNEE
from tornpage.sim.experiments.least_pages import LEAST_PAGES
from tornpage.sim.experiments.pool import POOL
from tornpage.sim.experiments.quorum import QUORUM
from tornpage.sim.experiments.rebalance import REBALANCE
from tornpage.sim.experiments.replay import REPLAY
from tornpage.sim.experiments.roll import ROLL
from tornpage.sim.experiments.second_copy import SECOND_COPY
from tornpage.sim.experiments.slow_disk import SLOW_DISK
from tornpage.sim.experiments.stalls import STALLS
from tornpage.sim.experiments.values import Experiment
from tornpage.sim.experiments.warm_up import WARM_UP

__all__ = ["EXPERIMENTS", "UnknownExperiment", "named"]

EXPERIMENTS: tuple[Experiment, ...] = (
    KNEE,
    FRONTIER,
    STALLS,
    ROLL,
    WARM_UP,
    LEAST_PAGES,
    POOL,
    SLOW_DISK,
    REPLAY,
    SECOND_COPY,
    CONSUMER_WINDOW,
    REBALANCE,
    QUORUM,
    FAILOVER,
)


class UnknownExperiment(ValueError):
    """There is no experiment of that name; the message has the nearest ones."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        near = get_close_matches(name, known, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
        super().__init__(f"no experiment {name!r}; {hint}")


def named(name: str, experiments: Sequence[Experiment] = EXPERIMENTS) -> Experiment:
    """Return the experiment of this name. Raises UnknownExperiment."""
    for experiment in experiments:
        if experiment.name == name:
            return experiment
    raise UnknownExperiment(name, [experiment.name for experiment in experiments])
