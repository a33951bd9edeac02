"""The page of one counterexample: promise, operations, losses of the disk, recovery.

The page is one file without network. Text and tables contain everything that the drawings show, so that it can be read
without scripts, by keyboard, and on paper. Everything from the case is escaped, since topics, keys and bodies may be
hostile.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tornpage.reports.pages.templating import rendered
from tornpage.reports.palette import FATES
from tornpage.reports.plots.figures import Drawing, page_map_figure
from tornpage.reports.plots.lanes import LANE_IN, Lanes, plot_lanes, summarise_lanes
from tornpage.reports.plots.svg import WIDE_IN, inline_svg
from tornpage.reports.promises import promise_of
from tornpage.reports.results.tables import Caption, FactRow, PageMapRow, PageRow
from tornpage.reports.shape import Count, Scalar, shaped
from tornpage.reports.text import counted

__all__ = ["Counterexample", "headline_of", "read_counterexample", "render_counterexample"]

_SCRIPTS = ("copy.js", "anomalies.js", "stepper.js")


@dataclass(frozen=True, slots=True)
class HexLine:
    """Sixteen bytes of a page.

    `repeats` lines after it are equal. `frame` names what begins in it.
    """

    position: Count
    hexadecimal: str
    text: str
    repeats: Count
    frame: str


@dataclass(frozen=True, slots=True)
class PageVersion:
    """A version of a page: the entry that wrote it (-1: before the run), and its fate."""

    number: Count
    entry: int
    survived: str
    changed: Count
    lines: tuple[HexLine, ...]


@dataclass(frozen=True, slots=True)
class PageHistory:
    """The journal entries that wrote a page, and those that synced its file."""

    file: str
    number: Count
    writes: tuple[int, ...]
    syncs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HexPage:
    """A page of the image as text, with the possible versions at the crash, oldest first."""

    file: str
    page: Count
    fate: str
    lines: tuple[HexLine, ...]
    versions: tuple[PageVersion, ...] = ()

    @property
    def is_anomaly(self) -> bool:
        """Whether the page differs from the last write."""
        return self.fate in ("lost", "older", "torn")


@dataclass(frozen=True, slots=True)
class FrameRow:
    """Bytes of a log file, their meaning, and what recovery did with them."""

    file: str
    offset: Count
    size_bytes: Count
    what: str
    verdict: str
    recovery: str = ""


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A record that was put: promised, whole on the disk, present after recovery."""

    offset: Count
    size_bytes: Count
    message: str
    promised: bool
    on_disk: bool
    recovered: bool

    @property
    def verdict(self) -> str:
        """The ruling about it in words."""
        if self.promised and not self.recovered:
            return "missing: it was promised"
        return "came back" if self.recovered else "lost, which is allowed"


@dataclass(frozen=True, slots=True)
class Decision:
    """What recovery found or did."""

    what: str
    said: str


@dataclass(frozen=True, slots=True)
class ShrinkRow:
    """A step of shrinking."""

    what: str
    tries: Count
    operations: Count
    losses: Count


@dataclass(frozen=True, slots=True)
class Shrinking:
    """The shrinking of the case; `ended` is empty if shrinking was completed."""

    one_minimal: bool
    ended: str
    tries: Count
    operations_before: Count
    history: tuple[ShrinkRow, ...]

    @property
    def steps(self) -> tuple[tuple[str, int, int, int], ...]:
        """The history as cells."""
        return tuple((row.what, row.tries, row.operations, row.losses) for row in self.history)


@dataclass(frozen=True, slots=True)
class Counterexample:
    """Everything the page shows."""

    contract: Count
    sentence: str
    expected: str
    found: str
    bug: str
    disk: str
    settings: dict[str, Scalar]
    token: str
    version: str
    losses: Count
    lost_pages: Count
    lanes: Lanes
    pages: tuple[PageRow, ...]
    facts: tuple[FactRow, ...]
    certificate: tuple[str, ...]
    hexes: tuple[HexPage, ...]
    frames: tuple[FrameRow, ...]
    records: tuple[RecordRow, ...]
    decisions: tuple[Decision, ...]
    legal: str
    shrinking: Shrinking | None = None
    histories: tuple[PageHistory, ...] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """A page in the grid.

    It has its fate, when it was written and synced, and the number of its hexdump (0: none).
    """

    number: int
    fate: str
    letter: str
    writes: str
    syncs: str
    place: int
    said: str


@dataclass(frozen=True, slots=True)
class CellRow:
    """The pages of a file."""

    file: str
    cells: tuple[Cell, ...]


def headline_of(example: Counterexample) -> str:
    """Return the failure in words.

    These are the messages that did not come back, or else the sentence of the judge.
    """
    promised = [row for row in example.records if row.promised]
    missing = sum(not row.recovered for row in promised)
    if not missing:
        return example.sentence
    count = len(promised)
    said = f"{counted(count, 'message was', 'messages were')} acknowledged"
    return f"{said} as safe, {count - missing} came back"


def read_counterexample(document: Mapping[str, Any]) -> Counterexample:
    """Return the account of a counterexample as frozen values.

    Raises ReportError if it has another shape.
    """
    return shaped(Counterexample, document, path=Path("account"), place="account")


def render_counterexample(example: Counterexample) -> str:
    """Return the page."""
    return rendered(
        "counterexample.html",
        _SCRIPTS,
        it=example,
        headline=headline_of(example),
        promise=promise_of(example.contract),
        lanes=_lanes_figure(example),
        pages=_map_figure(example) if example.pages else None,
        grid=_grid(example),
        fates=[(style.letter, fate) for fate, style in FATES.items()],
        settings=sorted(example.settings.items()),
    )


def _grid(example: Counterexample) -> tuple[CellRow, ...]:
    """Return the pages by file, the log first, each with the values that the slider needs."""
    histories = {(history.file, history.number): history for history in example.histories}
    places = {(page.file, page.page): place for place, page in enumerate(example.hexes, 1)}
    rows: dict[str, list[Cell]] = {}
    for page in example.pages:
        history = histories.get((page.file, page.number), PageHistory(page.file, page.number, (), ()))
        style = FATES.get(page.fate)
        versions = f", {counted(page.versions, 'version')} since its last sync"
        rows.setdefault(page.file, []).append(
            Cell(
                page.number,
                page.fate if style else "durable",
                style.letter if style else "?",
                " ".join(map(str, history.writes)),
                " ".join(map(str, history.syncs)),
                places.get((page.file, page.number), 0),
                f"page {page.number}: {page.fate}{versions if page.versions else ''}",
            )
        )
    ordered = sorted(rows.items(), key=lambda row: "log/" not in row[0])
    return tuple(CellRow(file, tuple(cells)) for file, cells in ordered)


def _lanes_figure(example: Counterexample) -> Drawing:
    drawn = summarise_lanes(example.lanes)
    title = "Operations, writes and barriers"
    rows = tuple((f"{mark.at}", mark.kind, mark.file, mark.what) for mark in example.lanes.marks)
    sentence = (
        "A vertical line is a barrier: earlier writes to its file, or names in its directory, are durable after it. "
        "The thick line is the crash. Writes between it and the last barrier of a file may be lost."
    )
    left_out = " The drawing shows only the end. The table is complete." if drawn.left_out else ""
    return Drawing(
        "lanes",
        title,
        inline_svg(
            lambda ax: plot_lanes(drawn, ax=ax),
            prefix="lanes",
            title=title,
            height_in=1.1 + LANE_IN * drawn.lanes,
            width_in=WIDE_IN,
        ),
        sentence + left_out,
        ("entry", "kind", "file or directory", "what"),
        rows,
        Caption(),
    )


def _map_figure(example: Counterexample) -> Drawing:
    row = PageMapRow(
        tuple(operation.text for operation in example.lanes.operations),
        max(0, example.lanes.crash_operation),
        example.disk,
        example.pages,
        example.facts,
        example.certificate,
        example.sentence,
        example.token,
    )
    return page_map_figure(row, Caption(), place=1)
