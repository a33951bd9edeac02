"""Test the simulation page in Chromium: no errors, no requests, no clipping, legible.

This covers light and dark schemes and a phone.
"""

from pathlib import Path

import pytest

from tests.reports.browser import CLIPPED, INKS, PAPERS, Browser, contrast
from tests.reports.experiment_results import KINDS, write_experiments
from tornpage.reports.pages.simulation_page import build_simulation_page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_simulation_page(write_experiments(tmp_path_factory.mktemp("page") / "run"))


@pytest.mark.parametrize(("scheme", "width"), [("light", 375), ("dark", 1280)])
def test_every_kind_of_chart_can_be_read(browser: Browser, page: Path, scheme: str, width: int) -> None:
    browser.open(page, width=width, scheme=scheme)
    assert browser.errors == []
    assert browser.requests == [page.as_uri()]
    browser.value("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    assert browser.value("document.querySelectorAll('figure svg').length") == len(KINDS)
    assert browser.value(CLIPPED) == []
    assert browser.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    papers, inks = browser.value(PAPERS), set(browser.value(INKS))
    assert [(ink, paper) for ink in inks for paper in papers if contrast(ink, paper) < 4.5] == []


def test_every_figure_leads_to_its_table(browser: Browser, page: Path) -> None:
    browser.open(page)
    links = browser.value("[...document.querySelectorAll('figcaption a')].map(a => a.getAttribute('href'))")
    assert len(links) == len(KINDS)
    assert all(browser.value(f"document.querySelector('{link} table tbody tr') !== null") for link in links)
