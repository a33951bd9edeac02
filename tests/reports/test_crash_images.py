"""Test crash images on the page: bars add up, marks name the store, tables are strict."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tornpage.reports.errors import ReportError
from tornpage.reports.pages.run_page import render
from tornpage.reports.palette import SERIES
from tornpage.reports.results.crash_images import CrashImageRow, plot_crash_images, summarise_crash_images
from tornpage.reports.results.tables import read_run

MakeRun = Callable[..., Path]


def image(**changes: Any) -> dict[str, Any]:
    return {
        "image": "08: hole",
        "told": 200,
        "rocketmq_kept": 150,
        "rocketmq_broken": [4, 5],
        "kept": 100,
        "in_quarantine": 60,
        "mode": "read-write",
        "broken": [],
        "not_judged": [2],
    } | changes


def ruling(**changes: Any) -> dict[str, Any]:
    return {"number": 3, "name": "No resurrection", "verdict": "broken", "sentence": "a byte <stays>", "file": "c/0",
            "offset": 7, "expected": "0x00", "found": "0x01"} | changes  # fmt: skip


def rows(*documents: dict[str, Any]) -> list[CrashImageRow]:
    lists = ("rocketmq_broken", "broken", "not_judged")
    return [CrashImageRow(**{**each, **{name: tuple(each[name]) for name in lists}}) for each in documents]


def test_bars_are_shares_of_the_records_told() -> None:
    (bars,) = summarise_crash_images(rows(image()))
    assert (bars.rocketmq.kept, bars.rocketmq.aside, bars.rocketmq.lost) == (75, 0, 25)
    assert (bars.ours.kept, bars.ours.aside, bars.ours.lost) == (50, 30, 20)
    assert (bars.rocketmq.broken, bars.ours.broken) == ((4, 5), ())


@pytest.mark.parametrize(
    "changes",
    [{"told": 0, "kept": 0, "rocketmq_kept": 0, "in_quarantine": 0}, {"kept": 900, "in_quarantine": 900}, {"told": 1}],
)
def test_bars_never_leave_the_axis(changes: dict[str, Any]) -> None:
    for bars in summarise_crash_images(rows(image(**changes))):
        for bar in (bars.rocketmq, bars.ours):
            assert min(bar.kept, bar.aside, bar.lost) >= 0
            assert bar.kept + bar.aside + bar.lost <= 100


def test_a_store_that_does_not_start_has_a_word_and_no_bar() -> None:
    ax = Figure().add_subplot()
    plot_crash_images(summarise_crash_images(rows(image(rocketmq_kept=None, rocketmq_broken=[7]))), ax=ax)
    texts = [text.get_text() for text in ax.texts]
    assert texts.count("does not start") == 1
    assert "7" in texts
    colours = {patch.get_facecolor() for patch in ax.patches if isinstance(patch, Rectangle)}
    assert len(ax.patches) == 3
    assert len(colours) == 2


def test_the_axes_name_what_they_show() -> None:
    ax = Figure().add_subplot()
    plot_crash_images(summarise_crash_images(rows(image(), image(image="09 " + "x" * 90))), ax=ax)
    assert ax.get_xlabel() == "acknowledged records (%)"
    assert [len(label.get_text()) <= 30 for label in ax.get_yticklabels()] == [True, True]
    legend = ax.get_legend()
    assert legend is not None
    assert len(legend.get_texts()) == 4
    assert SERIES[0].light != SERIES[2].light


def test_the_page_has_figure_and_rulings(make_run: MakeRun) -> None:
    others = ("put_latency", "at_risk", "stalls", "discovery", "page_map")
    tables = {"rulings": {"rows": [ruling()]}, "crash_images": {"rows": [image(), image(image="<b>")]}}
    run = read_run(make_run(without=others, **tables))
    text = render(run)
    assert 'id="crash-images"' in text
    assert 'href="#images"' in text
    assert "a byte &lt;stays&gt; (expected 0x00; found 0x01)" in text
    assert "&lt;b&gt;" in text
    assert "<b>" not in text


def test_a_run_without_images_has_no_such_section(make_run: MakeRun) -> None:
    others = ("put_latency", "at_risk", "stalls", "discovery", "page_map")
    assert 'id="images"' not in render(read_run(make_run(without=others)))


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("crash_images", image(told=-1)),
        ("crash_images", image(broken=["x"])),
        ("crash_images", {"image": "x"}),
        ("rulings", ruling(number="one")),
    ],
)
def test_a_malformed_table_is_named(make_run: MakeRun, table: str, row: dict[str, Any]) -> None:
    with pytest.raises(ReportError, match=table):
        read_run(make_run(**{table: {"rows": [row]}}))
