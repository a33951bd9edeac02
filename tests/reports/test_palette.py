"""Test that colours are legible on their paper and distinct without full colour vision."""

from itertools import combinations
from typing import Literal

import numpy as np
import numpy.typing as npt
import pytest

from tornpage.reports.palette import COLOURS, GRID, INK, MUTED, PAPER, SERIES, Colour, css_rules, css_values

Floats = npt.NDArray[np.float64]
Mode = Literal["light", "dark"]

# How eyes without one kind of cone see linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
VISIONS = {
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protan": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "deutan": [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "tritan": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}
TO_XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]


def linear(colour: Colour, mode: Mode) -> Floats:
    text: str = getattr(colour, mode)
    parts = np.array([int(text[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    found: Floats = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return found


def contrast(one: Colour, other: Colour, mode: Mode) -> float:
    low, high = sorted(float(np.dot(TO_XYZ[1], linear(colour, mode))) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(colour: Floats) -> Floats:
    scaled = np.array(TO_XYZ) @ np.clip(colour, 0, 1) / np.array([0.9505, 1, 1.089])
    x, y, z = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_colours_can_be_read_on_their_paper(mode: Mode) -> None:
    for colour in COLOURS:
        least = 1 if colour in (GRID, PAPER) else 4.5 if colour in (INK, MUTED) else 3
        assert contrast(colour, PAPER, mode) >= least, colour


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("vision", VISIONS)
def test_series_can_be_told_apart(mode: Mode, vision: str) -> None:
    seen = {colour.name: lab(np.array(VISIONS[vision]) @ linear(colour, mode)) for colour in SERIES}
    near = [pair for pair in combinations(seen, 2) if np.linalg.norm(seen[pair[0]] - seen[pair[1]]) < 18]
    assert near == []


def test_each_colour_has_a_value_per_scheme_and_two_classes() -> None:
    assert len({colour.light for colour in COLOURS}) == len({colour.name for colour in COLOURS}) == len(COLOURS)
    assert f"--ink:{INK.light};" in css_values(dark=False)
    assert f"--ink:{INK.dark};" in css_values(dark=True)
    assert css_rules([INK]) == ".f-ink{fill:var(--ink)}.s-ink{stroke:var(--ink)}"
