"""Long tests of pages in Chromium: contrast, paper, downloads, copying, many findings."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.reports.browser import INKS, PAPERS, Browser, contrast, luminance
from tests.reports.conftest import page_map
from tests.reports.documents import many_findings
from tornpage.reports.pages.run_page import build_report

pytestmark = pytest.mark.deep

OPENS_WITHIN_MS = 2_000
BYTES_MAX = 10_000_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast_in_both_schemes(browser: Browser, all_pages: dict[str, Path], scheme: str) -> None:
    for name, page in all_pages.items():
        browser.open(page, scheme=scheme)
        papers = browser.value(PAPERS)
        assert all((luminance(paper) > 0.5) == (scheme == "light") for paper in papers), name
        inks = set(browser.value(INKS))
        assert len(inks) > 2, name
        assert [(ink, paper) for ink in inks for paper in papers if contrast(ink, paper) < 4.5] == [], name


def test_every_page_prints_in_ink_with_what_is_folded(browser: Browser, all_pages: dict[str, Path]) -> None:
    for name, page in all_pages.items():
        browser.open(page, scheme="dark")
        pdf = base64.b64decode(browser.call("Page.printToPDF", printBackground=False)["data"])
        assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 1, name
        browser.call("Emulation.setEmulatedMedia", media="print", features=[])
        assert luminance(browser.value("getComputedStyle(document.body).color")) < 0.1, name
        browser.call("Emulation.setEmulatedMedia", media="", features=[])


def test_copy_button_copies_the_command_line(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.value("document.querySelector('button[data-copy=again]').click()")
    said = browser.value(
        "new Promise(done => setTimeout(() => done(document.querySelector('[data-copy=again]').textContent), 300))"
    )
    assert said in ("Copied", "Selected: press Ctrl+C")


def test_downloads_hold_the_run_as_it_is(browser: Browser, page: Path) -> None:
    browser.open(page)
    read = (
        "(async () => { const link = document.querySelector('a[download=\"run.json\"]'); const comma = ','; "
        "return atob(link.href.split(comma)[1]); })()"
    )
    assert json.loads(browser.value(read)) == json.loads((page.parent / "run.json").read_text())


def test_a_thousand_findings_are_small_and_open_soon(browser: Browser, make_run: Any) -> None:
    findings = many_findings(1_000)
    maps = [{**page_map(), "token": finding["token"]} for finding in findings]
    directory = make_run(
        record={"command": "explore", "verdict": "broken", "findings": findings}, page_map={"rows": maps}
    )
    page = build_report(directory)
    assert page.stat().st_size < BYTES_MAX
    times = []
    for _ in range(3):
        browser.open(page)
        times.append(browser.value("performance.getEntriesByType('navigation')[0].loadEventEnd"))
    assert min(times) < OPENS_WITHIN_MS, times
    assert browser.value("document.querySelectorAll('article.cause').length") == 210
    browser.value("find = document.querySelector('#find'); find.value = 'contract 3 offset 640 '")
    browser.value("find.dispatchEvent(new Event('input'))")
    assert browser.value("document.querySelector('.filter output').textContent").endswith(" of 1,000 findings")
