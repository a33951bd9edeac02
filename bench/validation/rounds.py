"""Rounds of a validation: every slice once, in random order, with arrivals of its own."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tornpage.bench.calibration.driven import Driven, drive
from tornpage.bench.calibration.load_slices import samples_of
from tornpage.bench.calibration.probes import slices
from tornpage.bench.validation.cases import CALIBRATING, HELD_OUT, Cases
from tornpage.sim.device.samples import Samples

__all__ = ["SLICES", "Round", "rounds_of"]

PROBES = 4
SLICES = len(CALIBRATING) + len(HELD_OUT) + PROBES
"""The slices of a round; the probes are pages, files, and syncs of both kinds of blocks."""


@dataclass(frozen=True, slots=True)
class Round:
    """The measurements of one round; cases are in the order of the tables."""

    number: int
    sweeps: Samples
    """Measurements without a store."""
    loads: Samples
    """Syncs of the calibrating slices."""
    calibrating: dict[str, Driven]
    held_out: dict[str, Driven]


def rounds_of(
    directory: str,
    *,
    seed: int,
    calibrating: Cases = CALIBRATING,
    held_out: Cases = HELD_OUT,
    progress: Callable[[str], None] = lambda name: None,
) -> Iterator[Round]:
    """Yield rounds without end, measured below an existing directory.

    `progress` is called before each slice. Raises HarnessError when a store loses something, StoreError or OSError when
    the directory cannot be used.
    """
    rng = np.random.default_rng(seed)
    number = 0
    while True:
        yield _measured(directory, number, rng, calibrating=calibrating, held_out=held_out, progress=progress)
        number += 1


def _measured(
    directory: str,
    number: int,
    rng: np.random.Generator,
    *,
    calibrating: Cases,
    held_out: Cases,
    progress: Callable[[str], None],
) -> Round:
    """Measure all slices once in random order, each with arrivals of its own."""
    probes = slices(directory, rng, modes=("mmap",), states=("reserved", "written"), loads=())
    seeds = {name: int(rng.integers(1 << 31)) for name in (*calibrating, *held_out)}
    names = [*seeds, *(probe.name for probe in probes)]
    by_name = {probe.name: probe for probe in probes}
    driven: dict[str, Driven] = {}
    parts: list[Samples] = []
    for place in rng.permutation(len(names)).tolist():
        name = names[place]
        progress(name)
        if name in by_name:
            parts.append(by_name[name].run(number))
        else:
            scenario = calibrating[name] if name in calibrating else held_out[name]
            driven[name] = drive(directory, scenario, seeds[name])
    return Round(
        number,
        Samples.joined(parts),
        Samples.joined(samples_of(driven[name], number) for name in calibrating),
        {name: driven[name] for name in calibrating},
        {name: driven[name] for name in held_out},
    )
