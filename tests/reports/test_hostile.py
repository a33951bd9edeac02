"""Test that hostile text stays text: the elements of a page are those of plain text.

All places of all pages are covered. Drawings are left out here because they take too long;
tests/reports/test_browser.py opens pages with drawings of hostile text.
"""

from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reports.accounts import account
from tests.reports.conftest import run_document
from tests.reports.documents import history, many_findings, store_document, with_texts
from tornpage.reports.pages import counterexample
from tornpage.reports.pages.counterexample import read_counterexample, render_counterexample
from tornpage.reports.pages.run_page import render
from tornpage.reports.pages.simulation_page import Shown, render_simulation
from tornpage.reports.pages.store_page import read_store_report, render_store_report
from tornpage.reports.pages.trends import render_trends
from tornpage.reports.plots import figures
from tornpage.reports.results.history import history_rows
from tornpage.reports.results.tables import Caption, Run, RunRecord
from tornpage.reports.shape import shaped

KEPT = frozenset({"fate", "kind", "severity", "verdict"})
NASTY = (
    "<script>alert(1)</script>", "</script>", "</style>", "</title>", "<!--", "-->", "]]>", "<img src=x onerror=y>",
    "\"'`", "' onmouseover='x", "&lt;", "&#x3c;b&#x3e;", "{{ 7*7 }}", "{% raw %}", "\x1b[2J\x1b]0;x\x07", "\0", "\r",
    "\x9b31m", "\u202e", "\u2066", "\ud800", "\ufeff", "\u2028", "javascript:alert(1)", "$x^2$", "a" * 300,
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(NASTY) | st.text(max_size=8), min_size=1, max_size=4).map("".join)


class Skeleton(HTMLParser):
    """The elements of a page with the names of their attributes, in order.

    All text is included, also that of attributes.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.texts += [value or "" for _, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        self.elements.append((f"/{tag}", ()))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def run_page(text_of: Callable[[str], str]) -> str:
    document = run_document() | {"findings": many_findings(3), "result_hash": "h", "settings": {"bug": "b"}}
    record = shaped(RunRecord, with_texts(document, text_of, keep=KEPT), path=Path("run"), place="run")
    return render(Run(record, *[None] * 8))


def counterexample_page(text_of: Callable[[str], str]) -> str:
    return render_counterexample(read_counterexample(with_texts(account(), text_of, keep=KEPT)))


def store_page(text_of: Callable[[str], str]) -> str:
    return render_store_report(read_store_report(with_texts(store_document(), text_of, keep=KEPT)))


def trends_page(text_of: Callable[[str], str]) -> str:
    return render_trends(history_rows(with_texts(history(4), text_of, keep=KEPT), path=Path("history")))


def simulation_page(text_of: Callable[[str], str]) -> str:
    caption = Caption(text_of("source"), 7, text_of("sim experiment"))
    shown = Shown(
        name=text_of("knee"), title=text_of("title"), question=text_of("question"), setting=text_of("setting"),
        see=text_of("see"), answer=text_of("answer"), svg="", columns=(text_of("column"),),
        cells=((text_of("cell"),),), rows_left_out=3, is_measured=True, caption=caption,
    )  # fmt: skip
    record = shaped(RunRecord, with_texts(run_document(), text_of, keep=KEPT), path=Path("run"), place="run")
    return render_simulation(record, [shown, shown])


PAGES = {
    "simulation": simulation_page,
    "run": run_page,
    "counterexample": counterexample_page,
    "store": store_page,
    "trends": trends_page,
}


@pytest.fixture(autouse=True)
def _without_drawings(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (counterexample, figures):
        monkeypatch.setattr(module, "inline_svg", lambda *_, **__: "")


def skeleton_with(make: Callable[[Callable[[str], str]], str], text: str) -> Skeleton:
    """Return the page with `text` after every text of its document."""
    return Skeleton(make(lambda before: f"{before} {text}"))


def check(make: Callable[[Callable[[str], str]], str], text: str, plain: Skeleton) -> None:
    found = skeleton_with(make, text)
    assert found.elements == plain.elements
    shown = "".join(found.texts)
    assert not [character for character in shown if not character.isprintable() and character not in "\n\t"]


@pytest.mark.parametrize("name", PAGES)
def test_nasty_text_changes_no_element_of_a_page(name: str) -> None:
    plain = skeleton_with(PAGES[name], "plain")
    assert len(plain.elements) > 100
    for text in ("".join(NASTY), "".join(reversed(NASTY))):
        check(PAGES[name], text, plain)


@pytest.mark.deep
@pytest.mark.parametrize("name", PAGES)
def test_no_text_changes_an_element_of_a_page(name: str) -> None:
    plain = skeleton_with(PAGES[name], "plain")

    @settings(max_examples=200, deadline=None)
    @given(text=TEXTS)
    def property_holds(text: str) -> None:
        check(PAGES[name], text, plain)

    property_holds()


def test_the_check_sees_text_that_gets_through() -> None:
    def leaky(text_of: Callable[[str], str]) -> str:
        return f"<p>{text_of('a')}</p>"

    plain = skeleton_with(leaky, "plain")
    for text in ("<b>", "\x1b[2J"):
        with pytest.raises(AssertionError):
            check(leaky, text, plain)


def test_a_page_beside_a_report_is_linked_by_its_own_name_only(make_run: Any) -> None:
    """Statements of a run about pages are not trusted.

    No missing file and no other address is linked.
    """
    from tornpage.reports.results.tables import read_run

    findings = many_findings(2)
    findings[0]["page"] = "javascript:alert(1)"
    findings[1]["token"] = "tp1-../../x-abc"
    directory = make_run(record={"findings": findings})
    (directory / "case-00000000.html").write_text("")
    pages = [finding.page for finding in read_run(directory).record.findings]
    assert pages == ["case-00000000.html", ""]
