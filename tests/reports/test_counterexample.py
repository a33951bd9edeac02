"""Test the page of a counterexample: all in text and tables, no markup, no network."""

import re
from functools import cache
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.reports.accounts import account, hostile_account
from tests.reports.documents import HOSTILE
from tornpage.reports.errors import ReportError
from tornpage.reports.pages.counterexample import headline_of, read_counterexample, render_counterexample
from tornpage.reports.plots.lanes import plot_lanes, summarise_lanes


class Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs


@cache
def usual_page() -> str:
    return page()


def page(**changes: object) -> str:
    return render_counterexample(read_counterexample({**account(), **changes}))


@pytest.mark.parametrize(
    "sentence",
    [
        "records that had to survive are missing after recovery",
        "(1, 212)",
        "put(body_bytes=100)",
        "the power fails, at rest",
        "tornpage replay tp1-00000000-abc",
        "tornpage promote tp1-00000000-abc",
        "failed sync",
        "page 1 of /store/commitlog/00000000000000000000: lost",
        "(and 255 equal lines)",
        "record of T/0 at 0",
        "missing: it was promised",
        "read-write",
        "never synced before the crash",
        "The case is 1-minimal",
        "40 operations became 3",
        "the bug <code>lying-flush</code> was planted",
        'href="#page-1" title="page 1: lost, 2 versions since its last sync"',
        "Version 1, by entry 5: lines that differ from version 0, none of which survived",
        "cut and erased",
    ],
)
def test_everything_is_there_as_text(sentence: str) -> None:
    assert sentence in usual_page()


def test_a_case_without_a_crash_has_no_empty_sections() -> None:
    lanes = {**account()["lanes"], "crash": -1, "crash_operation": -1}
    without: dict[str, list[str]] = {
        name: [] for name in ("pages", "facts", "certificate", "hexes", "frames", "records", "decisions", "histories")
    }
    text = page(lanes=lanes, legal="", shrinking=None, **without)
    assert 'id="disk"' not in text
    assert 'href="#disk"' not in text
    assert "the power fails" not in text
    assert "The case was not shrunk" in text


def test_hostile_text_stays_text() -> None:
    text = render_counterexample(read_counterexample(hostile_account()))
    found = Elements(text)
    assert found.names.count("script") == 1
    assert "img" not in found.names
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert r"\x1b" in text
    assert "&lt;img" in text
    assert HOSTILE not in text


def test_the_check_above_sees_markup_that_got_through() -> None:
    found = Elements(usual_page().replace("read-write", "<img src=x onerror=y>"))
    assert "img" in found.names
    assert "onerror" in dict(found.attributes)


def test_the_page_asks_for_nothing() -> None:
    text = usual_page()
    assert "default-src 'none'" in unescape(text)
    assert not re.findall(r"""(?:src|href)=["'](?!#)""", text)
    assert "url(http" not in text


def test_equal_accounts_give_equal_pages() -> None:
    assert page() == usual_page()


def test_an_account_of_another_shape_is_refused() -> None:
    with pytest.raises(ReportError, match="lanes"):
        read_counterexample({**account(), "lanes": 7})


def test_lanes_show_operations_files_barriers_and_the_crash() -> None:
    drawn = summarise_lanes(read_counterexample(account()).lanes)
    ax = plot_lanes(drawn, ax=Figure().add_subplot())
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["1. put(body_bytes=100)", "2. put()", "commitlog/00000000000000000000", "commitlog"]
    assert ax.get_xlabel() == "entry of the disk's journal"
    drawn_x = [np.asarray(line.get_xdata()).tolist() for line in ax.lines]
    verticals = sorted(x[0] for x in drawn_x if len(x) == 2 and x[0] == x[1])
    assert verticals == [2, 4, 7]
    assert not drawn.left_out


def test_what_does_not_fit_into_the_drawing_is_said() -> None:
    lanes = account()["lanes"]
    marks = [{"at": at, "kind": "write", "file": f"/store/{at % 20}", "what": "page 0"} for at in range(400)]
    text = page(lanes={**lanes, "entries": 400, "crash": 400, "marks": marks})
    assert "The drawing shows only the end" in text
    assert "/store/19" in text


def test_the_headline_counts_messages_that_did_not_come_back() -> None:
    promised = [row for row in account()["records"] if row["promised"]]
    missing = sum(not row["recovered"] for row in promised)
    found = headline_of(read_counterexample(account()))
    assert missing
    assert found.startswith(f"{len(promised)} message")
    assert found.endswith(f"acknowledged as safe, {len(promised) - missing} came back")
    assert f'<p class="verdict text">{found}</p>' in usual_page()


def test_without_a_missing_message_the_headline_is_what_the_judge_found() -> None:
    rows = [{**row, "recovered": True} for row in account()["records"]]
    example = read_counterexample({**account(), "records": rows})
    assert headline_of(example) == example.sentence
