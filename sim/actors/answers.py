"""Compute when producers have their answers from when their messages were safe."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tornpage.sim.distributions import Int64s
from tornpage.sim.pair import Pair, replicate
from tornpage.sim.scenario import Scenario
from tornpage.sim.streams import stream

__all__ = ["answers_ns"]


def answers_ns(scenario: Scenario, seed: int, columns: Mapping[str, Int64s], flushes: NDArray[np.void]) -> Int64s:
    """Return the time of each answer: when the message is as safe as the policy promises.

    That is: in the page cache, on this disk, or at the replica. `columns` has `written_ns`, `committed_ns`,
    `durable_ns` and `size`, `flushes` are rows of FLUSH_DTYPE. A refused put is answered at once. The answers of a
    round of group commit follow one another.
    """
    here = columns["durable_ns" if scenario.answers_after_flush else "written_ns"]
    times = scenario.device
    if scenario.answers_after_flush and (times.answering_ns or times.answer_ns):
        here = here + times.answering_ns + _places_in_round(flushes) * times.answer_ns
    if scenario.replica is None:
        return here
    if isinstance(scenario.replica, Pair):
        if not scenario.replica.waits:
            return here
        there = replicate(scenario.replica, seed, columns["committed_ns"], columns["size"]).known_ns
        return np.where(columns["size"] > 0, np.maximum(here, there), here)
    delays = scenario.replica.delay.draw(stream(seed, "replica"), len(here))
    there = np.maximum.accumulate(columns["committed_ns"] + delays)
    return np.where(columns["size"] > 0, np.maximum(here, there), here)


def _places_in_round(flushes: NDArray[np.void]) -> Int64s:
    """Return how many messages of the same round come before each message."""
    rounds = np.repeat(flushes["round"], flushes["messages"])
    rows = np.arange(len(rounds), dtype=np.int64)
    begins = np.concatenate(([True], rounds[1:] != rounds[:-1])) if len(rounds) else rounds.astype(bool)
    return rows - np.maximum.accumulate(np.where(begins, rows, 0))
