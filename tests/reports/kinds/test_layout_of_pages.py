"""Look at a page of each kind in Chromium: wide and narrow, light and dark, and printed.

A fault is text that is cut, overlaps other text, is too small in a plot, or lies outside of the window. The screenshot
of each page shows something: it is not of one colour.
"""

import base64
from pathlib import Path

import pytest

from tests.reports.browser import Browser
from tests.reports.kinds.kinds_of_pages import KINDS, pages_of_each_kind
from tests.reports.kinds.layout import LAYOUT

WIDE, NARROW, PAPER = 1440, 375, 760
OPEN_ALL = "document.querySelectorAll('details').forEach(e => { e.open = true; })"
FAULTY = """
document.body.innerHTML = '<p>above</p><p data-style="margin-top: -2em">below</p>'
    + '<div data-style="width: 3em; overflow: hidden; white-space: nowrap">a long line that is cut</div>'
    + '<div data-style="position: absolute; left: 2000px; white-space: nowrap">outside</div>'
    + '<div data-style="height: 2.5em; line-height: 1em; overflow-y: auto">one<br>two<br>three<br>four</div>'
    + '<svg class="figure" viewBox="0 0 900 20" width="90"><text x="0" y="15" font-size="9">tiny</text></svg>';
document.querySelectorAll('[data-style]').forEach(each => { each.style.cssText = each.dataset.style; });
document.querySelector('svg').style.cssText = 'min-width: 0; width: 90px';
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return pages_of_each_kind(tmp_path_factory.mktemp("kinds"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_has_no_fault_on_any_screen_or_paper(browser: Browser, pages: dict[str, Path], kind: str) -> None:
    for width, scheme in ((WIDE, "light"), (NARROW, "dark")):
        browser.open(pages[kind], width=width, scheme=scheme)
        assert browser.errors == [], width
        assert browser.value(LAYOUT) == [], width
        shot = base64.b64decode(browser.call("Page.captureScreenshot", format="png")["data"])
        assert shot.startswith(b"\x89PNG")
        assert len(shot) > 5_000, "a page of one colour is smaller"
        browser.value(OPEN_ALL)
        assert browser.value(LAYOUT) == [], (width, "with all parts open")
    browser.call("Emulation.setDeviceMetricsOverride", width=PAPER, height=1080, deviceScaleFactor=1, mobile=False)
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    try:
        assert browser.value(LAYOUT) == [], "printed"
    finally:
        browser.call("Emulation.setEmulatedMedia", media="", features=[])


@pytest.mark.parametrize(
    "fault",
    [
        '"above" overlaps "below"',
        "is cut by <div",
        '"outside" is outside of the window',
        'a line is cut in half: "three"',
        '"tiny" is 0.9 px high',
    ],
)
def test_each_fault_is_seen_where_it_is(browser: Browser, pages: dict[str, Path], fault: str) -> None:
    """A check that finds nothing has to be able to find something."""
    browser.open(pages["board"], width=WIDE)
    browser.value(FAULTY)
    assert any(fault in each for each in browser.value(LAYOUT))
