"""Test the page as text: equal bytes, no network, escaped hostile content, named gaps."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.reports.conftest import page_map
from tornpage.cli.report import command
from tornpage.reports.errors import ReportError
from tornpage.reports.pages import run_page
from tornpage.reports.pages.gaps import gaps_of
from tornpage.reports.pages.run_page import build_report, render
from tornpage.reports.results.tables import read_run

MakeRun = Callable[..., Path]
HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{ 7*7 }}\x1b]0;x\x07\0\u202e\ud800$x^2$"
FIGURES = ("put_latency", "at_risk", "stalls", "page_map", "discovery")
"""The tables with drawings, which take most of the time of a page."""
HOME = Path(run_page.__file__).parents[2]
VOID = {"meta", "link", "img", "br", "hr", "input"}


class Page(HTMLParser):
    """Elements with attributes, all text, and whether elements are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def values(self, name: str) -> list[str]:
        return [attributes[name] or "" for _, attributes in self.elements if name in attributes]

    @property
    def figures(self) -> int:
        return sum(tag == "svg" and attributes.get("class") == "figure" for tag, attributes in self.elements)

    def count(self, tag: str) -> int:
        return sum(found == tag for found, _ in self.elements)


@pytest.fixture
def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_equal_runs_give_equal_bytes_in_any_process(make_run: MakeRun, text: str) -> None:
    assert build_report(make_run("again")).read_text(encoding="utf-8") == text
    program = (
        "import sys, pathlib; from tornpage.reports.pages.run_page import build_report; "
        "build_report(pathlib.Path(sys.argv[1]))"
    )
    other = make_run("other")
    done = subprocess.run(
        [sys.executable, "-P", "-c", program, str(other)],
        env={"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LANG": "C", "HOME": str(other), "PYTHONPATH": str(HOME)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (other / "index.html").read_text(encoding="utf-8") == text


def test_page_is_whole_in_itself(text: str) -> None:
    page = Page(text)
    assert len(text) < 1_000_000
    assert "http:" not in text
    assert "https:" not in text
    assert "@import" not in text
    assert not {"src", "srcset", "data", "poster", "action", "style"} & {
        name for _, attributes in page.elements for name in attributes
    }
    assert not {"img", "link", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in page.elements}
    assert {link[:1] if link[:1] == "#" else link.partition(",")[0] for link in page.values("href")} == {
        "#",
        "data:application/json;base64",
        "data:application/gzip;base64",
    }
    assert set(re.findall(r"url\(.", text)) == {"url(#"}


def test_ids_are_unique_and_every_reference_has_its_target(text: str) -> None:
    page = Page(text)
    ids = page.values("id")
    assert len(set(ids)) == len(ids)
    referred = [link[1:] for link in page.values("href") if link.startswith("#")]
    referred += re.findall(r"url\(#([^)]+)\)", text)
    assert set(referred + page.values("aria-labelledby") + page.values("data-copy")) <= set(ids)


def test_policy_allows_the_style_and_the_script_of_the_page_and_nothing_else(text: str) -> None:
    (policy,) = [value for value in Page(text).values("content") if "default-src" in value]
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert text.index("Content-Security-Policy") < text.index("<style>")


def test_five_figures_each_with_a_title_a_caption_and_a_table(text: str) -> None:
    page = Page(text)
    assert page.figures == page.count("figure") == page.count("figcaption") == 5
    assert page.count("title") == 6
    for figure in re.findall(r"<figure.*?</figure>", text, re.DOTALL):
        assert 'role="img"' in figure
        assert "<details><summary>The numbers as a table</summary>" in figure
        assert "Source: " in figure
    assert "tornpage sim run --seed 0 --messages 200000" in text


def test_page_reads_without_scripts_and_buttons_come_with_them(text: str) -> None:
    page = Page(text)
    buttons = [attributes for tag, attributes in page.elements if tag == "button"]
    assert len(buttons) == 2
    assert all("hidden" in attributes for attributes in buttons)
    shown = "".join(page.text)
    for sentence in (
        "Every promise that this run checked was kept.",
        "Never happened: sync error.",
        "there is no Java on this machine",
        "a byte cut by recovery is still on disk at offset 3079",
        "the bug no-erase-after-cut was planted on purpose",
        "page 0 of /store/commitlog/00000000000000000000: version written at entry 28",
        "tornpage replay tp1-9c48e35c-",
        "tornpage prove --seed 0",
        "explore_states_per_s",
        "308 new disk images",
        "6.1.0-18-amd64",
    ):
        assert sentence in shown


def hostile(value: Any) -> Any:
    """Return a document with hostile text in place of all free text."""
    if isinstance(value, dict):
        return {key: value[key] if key == "fate" else hostile(value[key]) for key in value}
    if isinstance(value, list):
        return [hostile(item) for item in value]
    return f"{value}{HOSTILE}" if isinstance(value, str) else value


@pytest.mark.slow
def test_hostile_content_is_escaped_everywhere(make_run: MakeRun) -> None:
    directory = make_run()
    for path in [directory / "run.json", *(directory / "tables").iterdir()]:
        document = hostile(json.loads(path.read_text()))
        if path.name == "run.json":
            document["machine"] = {HOSTILE: HOSTILE}
            document["figures"] = {HOSTILE: 1}
            document["findings"] = [{"code": HOSTILE, "severity": HOSTILE, "sentence": HOSTILE, "token": HOSTILE}]
        path.write_text(json.dumps(document))
    text = build_report(directory).read_text(encoding="utf-8")
    page = Page(text)
    assert page.count("script") == 1
    assert page.count("img") == 0
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert not [character for character in text if not character.isprintable() and character != "\n"]
    assert r"\x1b]0;x\x07\x00\u202e\ud800" in text
    assert "{{ 7*7 }}" in text
    assert page.figures == 5


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("steps", "Single steps of this run were not recorded."),
        ("put_latency", "Put latency per flush policy was not simulated."),
        ("at_risk", "Messages at risk were not simulated."),
        ("stalls", "Stalls at file rolls were not simulated."),
        ("discovery", "No crash campaign recorded a discovery curve."),
        ("activation", "No crash campaign was run, so there is no activation table."),
        ("page_map", "This run recorded no counterexample."),
        ("audit", "No store was audited in this run."),
    ],
)
def test_a_missing_or_empty_table_is_told_where_it_would_stand_and_in_the_banner(
    make_run: MakeRun, table: str, sentence: str
) -> None:
    others = tuple(name for name in FIGURES if name != table)
    whole = read_run(make_run("whole", without=others))
    missing = read_run(make_run("missing", without=(*others, table)))
    empty = read_run(make_run("empty", without=others, **{table: {"rows": []}}))
    assert sentence not in render(whole)
    assert sentence in render(missing)
    assert sentence in render(empty)
    new = [set(gaps_of(run)) - set(gaps_of(whole)) for run in (missing, empty)]
    assert [len(gaps) for gaps in new] == [1, 1]
    assert new[1].pop() == f"{new[0].pop()} (The table is empty.)"


def test_factors_with_missing_pairs_come_first(text: str) -> None:
    assert "fault calls: 49 pairs missing" in text
    assert "durability: all pairs exercised" in text
    assert text.index("fault calls:") < text.index("durability:")


def test_a_run_without_any_table_has_a_page(make_run: MakeRun) -> None:
    from tornpage.reports.results.tables import Run

    names = tuple(name for name in Run.__dataclass_fields__ if name != "record")
    page = Page(build_report(make_run(without=names)).read_text(encoding="utf-8"))
    assert page.figures == 0
    assert page.count("h2") == 4  # findings, provenance, missing parts, downloads


@pytest.mark.parametrize(
    ("record", "word", "tone"),
    [
        ({"verdict": "holds"}, "holds", "good"),
        ({"verdict": "broken"}, "broken", "bad"),
        ({"verdict": "vacuous"}, "vacuous", "unsure"),
        ({"verdict": "unknown"}, "unknown", "unsure"),
        ({"verdict": "harness"}, "harness", "bad"),
        ({"verdict": None}, "no verdict", "unsure"),
        ({"verdict": "splendid"}, "splendid", "unsure"),
        ({"verdict": "holds", "interrupted": True}, "interrupted", "unsure"),
    ],
)
def test_only_a_run_that_holds_is_green(make_run: MakeRun, record: dict[str, Any], word: str, tone: str) -> None:
    text = render(read_run(make_run(record=record, without=FIGURES)))
    assert f'<div class="banner {tone}">\n<p class="verdict">{word}</p>' in text


def test_many_counterexamples_have_a_drawing_up_to_a_bound_and_words_beyond(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_page, "MAPS_MAX", 3)
    monkeypatch.setattr(run_page, "TOLD_MAX", 4)
    others = tuple(name for name in FIGURES if name != "page_map")
    directory = make_run(without=others, page_map={"rows": [page_map()] * 9})
    page = Page(build_report(directory).read_text(encoding="utf-8"))
    assert (page.count("article"), page.figures) == (4, 3)
    assert "5 further counterexamples" in "".join(page.text)
    assert len(set(page.values("id"))) == len(page.values("id"))


def test_a_thousand_findings_stay_small(make_run: MakeRun) -> None:
    finding = {"code": "record-crc", "severity": "error", "file": "commitlog/0", "offset": 7, "message": "x" * 100}
    audit = {"rows": [{"store": "s", "what": "w", "verdict": "broken", "findings": [finding] * 1000}]}
    assert build_report(make_run(audit=audit, without=FIGURES)).stat().st_size < 500_000


@pytest.mark.slow
@pytest.mark.parametrize(("programs", "columns"), [((), 0), (("a", "b"), 2), (("b",), 1)])
def test_findings_without_program_and_place_have_no_column_for_them(
    make_run: MakeRun, programs: tuple[str, ...], columns: int
) -> None:
    """Findings of a campaign in shards have none.

    An empty column pushed their tokens off a narrow screen.
    """
    bare = [{"code": "contract-4", "severity": "broken", "sentence": f"unit {n} is wrong", "history": n} for n in "ab"]
    findings = [one | ({"program": ["put()"]} if one["history"] in programs else {}) for one in bare]
    directory = make_run(record={"command": "campaign", "verdict": "broken", "findings": findings})
    assert build_report(directory).read_text().count('<th scope="col">program or place</th>') == columns


@pytest.mark.slow
def test_figures_ignore_the_settings_of_the_process(make_run: MakeRun, text: str) -> None:
    import matplotlib

    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        assert build_report(make_run()).read_text(encoding="utf-8") == text
        assert matplotlib.rcParams["font.size"] == 30


# ---- the command -------------------------------------------------------------------------------------------------


def test_command_prints_the_path_alone(make_run: MakeRun) -> None:
    directory = make_run(without=FIGURES)
    done = CliRunner().invoke(command, [str(directory)])
    assert (done.exit_code, done.output) == (0, f"{directory / 'index.html'}\n")


def test_command_with_json_adds_the_path(make_run: MakeRun) -> None:
    directory = make_run(without=FIGURES)
    done = CliRunner().invoke(command, [str(directory), "--json"])
    document = json.loads(done.output)
    assert document["path"] == str(directory / "index.html")
    assert (document["command"], document["verdict"]) == ("report", None)
    assert document["figures"]["bytes"] == (directory / "index.html").stat().st_size


@pytest.mark.parametrize("wrong", ["empty", "missing", "malformed"])
def test_command_refuses_a_wrong_directory_in_one_line(make_run: MakeRun, tmp_path: Path, wrong: str) -> None:
    directory = make_run(steps={"rows": 7}) if wrong == "malformed" else tmp_path / wrong
    if wrong == "empty":
        directory.mkdir()
    done = CliRunner().invoke(command, [str(directory)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("tornpage: ")
    assert not (directory / "index.html").exists()


def test_a_page_that_cannot_be_written_leaves_nothing_behind(make_run: MakeRun) -> None:
    directory = make_run(without=FIGURES)
    (directory / "index.html").mkdir()
    before = sorted(directory.iterdir())
    with pytest.raises(ReportError, match="cannot be written"):
        build_report(directory)
    assert sorted(directory.iterdir()) == before
