"""The colours of figures and pages, each with a name and values for light and dark paper.

Figures are drawn in the light values. In a page they become CSS classes of the name, so that one figure serves light,
dark and print. Series colours differ in lightness as well as in hue (readable without colour vision). They have a
contrast of at least 3:1 with their paper, and text colours one of 4.5:1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "COLOURS",
    "FATES",
    "GRID",
    "INK",
    "MUTED",
    "PAPER",
    "SERIES",
    "Colour",
    "FateStyle",
    "Line",
    "SeriesStyle",
    "css_rules",
    "css_values",
    "series_style",
]

Line = Literal["-", "--", "-.", ":"]


@dataclass(frozen=True, slots=True)
class Colour:
    """One colour on light and on dark paper, as #rrggbb."""

    name: str
    light: str
    dark: str


@dataclass(frozen=True, slots=True)
class SeriesStyle:
    """The look of one series: `colour` (light value), marker and line of matplotlib."""

    colour: str
    marker: str
    line: Line


@dataclass(frozen=True, slots=True)
class FateStyle:
    """The look of one fate of a page: letter, `colour` (light value), hatch, filled or not."""

    letter: str
    colour: str
    hatch: str
    filled: bool


INK = Colour("ink", "#1b1f24", "#e8eaed")
MUTED = Colour("muted", "#57606a", "#a3adb8")
GRID = Colour("grid", "#d5dae0", "#353d47")
PAPER = Colour("paper", "#fefefe", "#15191e")
_BLUE = Colour("blue", "#0080d6", "#1398ec")
_RED = Colour("red", "#c24d00", "#ff6b00")
_GREEN = Colour("green", "#006652", "#adebda")
_PURPLE = Colour("purple", "#7c3b87", "#e0b1e7")
_OCHRE = Colour("ochre", "#473b00", "#f8f1bf")
_SLATE = Colour("slate", "#1f2329", "#687e97")
_STONE = Colour("stone", "#8b949e", "#7d8792")
SERIES = (_BLUE, _RED, _GREEN, _PURPLE, _OCHRE, _SLATE)
COLOURS = (INK, MUTED, GRID, PAPER, *SERIES, _STONE)

_MARKERS = "osD^vPX"
_LINES: tuple[Line, ...] = ("-", "--", "-.", ":")

FATES = {
    "durable": FateStyle("D", _STONE.light, "", filled=True),
    "kept": FateStyle("K", _BLUE.light, "", filled=True),
    "lost": FateStyle("L", _RED.light, "////", filled=False),
    "older": FateStyle("O", _OCHRE.light, "....", filled=False),
    "torn": FateStyle("T", _PURPLE.light, "xxx", filled=False),
    "gone": FateStyle("G", _SLATE.light, "--", filled=False),
}
"""The fates of a page, in the order of a legend.

Gone is a page of a file that has no name any more.
"""


def series_style(number: int) -> SeriesStyle:
    """Return the look of series `number`. Colour and marker together repeat after 42 series."""
    colour = SERIES[number % len(SERIES)].light
    return SeriesStyle(colour, _MARKERS[number % len(_MARKERS)], _LINES[number % len(_LINES)])


def css_values(*, dark: bool) -> str:
    """Return the custom properties of all colours."""
    return "".join(f"--{colour.name}:{colour.dark if dark else colour.light};" for colour in COLOURS)


def css_rules(colours: Sequence[Colour] = COLOURS) -> str:
    """Return the classes that figures use: `f-NAME` fills, `s-NAME` strokes."""
    return "".join(f".f-{c.name}{{fill:var(--{c.name})}}.s-{c.name}{{stroke:var(--{c.name})}}" for c in colours)
