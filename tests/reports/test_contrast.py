"""Test WCAG AA by computation: every pair of text and paper of the style sheet.

Both the light and the dark scheme are computed.
"""

import re
from typing import Literal

import pytest

from tests.reports.browser import contrast
from tornpage.reports.pages.templating import style_sheet

Scheme = Literal["light", "dark"]
PAPERS = ("paper", "soft")
TEXTS = ("ink", "muted", "link", "good", "bad", "unsure")
"""Colours of text; each stands on both papers."""
EDGES = ("blue", "red", "purple", "ochre", "green", "muted")
"""Colours that carry meaning as lines and areas: 3:1 (SC 1.4.11).

Stone is drawn on paper only (test_palette.py).
"""


def values(style: str, scheme: Scheme) -> dict[str, str]:
    """Return the custom properties of a scheme; dark ones stand in the first rule about it."""
    dark = style.index("prefers-color-scheme: dark")
    part = style[:dark] if scheme == "light" else style[dark : style.index("}", dark)]
    return dict(re.findall(r"--([a-z]+):\s*(#[0-9a-f]{6})", part))


def rgb(colour: str) -> str:
    return "rgb({}, {}, {})".format(*(int(colour[place : place + 2], 16) for place in (1, 3, 5)))


def too_weak(found: dict[str, str], names: tuple[str, ...], least: float) -> list[tuple[str, str, float]]:
    pairs = [(name, paper, contrast(rgb(found[name]), rgb(found[paper]))) for name in names for paper in PAPERS]
    return [pair for pair in pairs if pair[2] < least]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_edges_can_be_read_on_both_papers(scheme: Scheme) -> None:
    found = values(style_sheet(), scheme)
    assert too_weak(found, TEXTS, 4.5) == []
    assert too_weak(found, EDGES, 3.0) == []
    # A pressed chip is drawn with swapped colours.
    assert contrast(rgb(found["paper"]), rgb(found["link"])) >= 4.5


def test_the_check_sees_a_colour_that_is_too_weak() -> None:
    style = re.sub(r"--muted:\s*#[0-9a-f]{6}", "--muted: #9aa0a6", style_sheet(), count=1)
    assert [pair[0] for pair in too_weak(values(style, "light"), TEXTS, 4.5)] == ["muted", "muted"]


def test_no_rule_names_a_colour_of_its_own() -> None:
    style = style_sheet()
    rules = style[style.index("*, ::before") :]
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b", rules) == []
    used = set(re.findall(r"(?<![-\w])color:\s*var\(--([a-z]+)\)", rules)) - {"paper"}
    assert used <= set(TEXTS)
