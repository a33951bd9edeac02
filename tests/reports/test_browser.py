"""Open every page in headless Chromium from a file: no errors, no requests, no clipping.

All controls work. One Chromium opens all pages. Longer tests are in test_browser_deep.py.
"""

from pathlib import Path

from tests.reports.browser import CLIPPED, Browser

OPEN_ALL = "document.querySelectorAll('details').forEach(e => { e.open = true; })"


def test_every_page_opens_quietly_and_fits_into_wide_and_narrow_windows(
    browser: Browser, all_pages: dict[str, Path]
) -> None:
    for name, page in all_pages.items():
        for width in (1280, 375):
            browser.open(page, width=width)
            browser.value(OPEN_ALL)
            assert browser.errors == [], name
            assert browser.requests == [page.as_uri()], name
            assert browser.value(CLIPPED) == [], (name, width)
            assert browser.value("document.documentElement.scrollWidth") <= width, (name, width)
        assert browser.value("document.scripts.length + document.images.length") == 1, name
        assert browser.value("document.title").startswith("tornpage"), name
        assert browser.value("[...document.querySelectorAll('button')].some(e => e.hidden)") is False, name


def test_the_page_of_a_run_shows_its_figures(browser: Browser, page: Path) -> None:
    browser.open(page)
    sizes = browser.value(
        "[...document.querySelectorAll('figure svg.figure')].map(e => e.getBBox()).map(b => [b.width, b.height])"
    )
    assert len(sizes) == 5
    assert all(width > 200 and height > 50 for width, height in sizes), sizes


def test_findings_are_filtered_by_code_by_number_and_by_text(browser: Browser, all_pages: dict[str, Path]) -> None:
    browser.open(all_pages["store"])
    shown = "[...document.querySelectorAll('tr[data-code]')].filter(e => e.offsetParent).map(e => e.dataset.code)"
    browser.value("document.querySelector('[data-code=CQ_MISSING].chip').click()")
    assert browser.value(shown) == ["CQ_MISSING"]
    assert browser.value("document.querySelector('.filter output').textContent") == "1 of 3 findings"
    browser.value("document.querySelector('[data-code=CQ_MISSING].chip').click()")
    browser.value("find = document.querySelector('#find'); find.value = 'CHECKPOINT'")
    browser.value("find.dispatchEvent(new Event('input'))")
    assert browser.value(shown) == ["CP_AHEAD_OF_LOG"]
    browser.value("find.value = 'contract 3'; find.dispatchEvent(new Event('input'))")
    assert browser.value(shown) == []


def test_keys_lead_from_anomaly_to_anomaly(browser: Browser, all_pages: dict[str, Path]) -> None:
    browser.open(all_pages["counterexample"])
    seen = []
    for _ in range(5):
        browser.value("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'n'}))")
        seen.append(browser.value("document.activeElement.tagName"))
    assert seen == ["LI", "TR", "DETAILS", "TR", "LI"]
    browser.value("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'p'}))")
    assert browser.value("document.activeElement.tagName") == "TR"


def test_the_slider_walks_through_the_journal_and_a_cell_leads_to_its_bytes(
    browser: Browser, all_pages: dict[str, Path]
) -> None:
    browser.open(all_pages["counterexample"])
    cells = "[...document.querySelectorAll('.cell[data-fate]')].map(e => e.textContent + ' ' + e.className)"
    told = "document.querySelector('.stepper output').textContent"
    assert browser.value(cells) == ["D cell fate-durable", "L cell fate-lost"]
    assert browser.value(told) == "the power fails: what is left"
    browser.value("step = document.querySelector('#step'); step.value = 6; step.dispatchEvent(new Event('input'))")
    assert browser.value(cells) == ["D cell fate-durable", "1 cell fate-dirty"]
    assert browser.value(told).startswith("entry 5 of 6: written: ")
    browser.value("step.value = 0; step.dispatchEvent(new Event('input'))")
    assert browser.value(cells) == ["· cell fate-untouched", "· cell fate-untouched"]
    browser.value("document.querySelectorAll('details').forEach(e => { e.open = false; })")
    browser.value("document.querySelector('a.cell').click()")
    assert browser.value("document.querySelector('#page-1').parentElement.open") is True
