"""The experiments that measure the real store beside the simulator.

Those of the simulator alone are in `sim`.
"""

from tornpage.bench.crashes.frontier import crash_frontier
from tornpage.sim.experiments.registry import EXPERIMENTS as SIMULATED
from tornpage.sim.experiments.values import Experiment

__all__ = ["EXPERIMENTS", "MEASURED"]

MEASURED: tuple[Experiment, ...] = (crash_frontier(),)
"""In the order of a page, after the simulated ones."""
EXPERIMENTS: tuple[Experiment, ...] = (*SIMULATED, *MEASURED)
