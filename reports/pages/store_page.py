"""The page of a store directory: its files, queues, index and findings.

The page is one file, and its tables contain everything that it shows, for readers without scripts. Topics, keys and
file names come from the store and may be hostile, so everything is escaped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tornpage.reports.pages.downloads import Download
from tornpage.reports.pages.gaps import Headline
from tornpage.reports.pages.templating import rendered
from tornpage.reports.pages.tiles import Tile
from tornpage.reports.plots.filemap import RUN_STYLES, FileMap, lines_of
from tornpage.reports.shape import Count, Scalar, shaped
from tornpage.reports.text import counted, number

__all__ = ["StoreReport", "read_store_report", "render_store_report"]

_SCRIPTS = ("copy.js", "filter.js")
_SEVERITIES = ("damage", "tear", "note")


@dataclass(frozen=True, slots=True)
class StoreFinding:
    """A finding in a store; `position` counts bytes of `file`, `offset` bytes of the log."""

    code: str
    severity: str
    file: str
    message: str
    remedy: str
    offset: int | None = None
    position: int | None = None
    topic: str | None = None
    queue_id: int | None = None
    queue_offset: int | None = None
    items: Count = 1

    @property
    def place(self) -> str:
        """The place in the file or in the log."""
        at = [f"position {self.position:,}"] if self.position is not None else []
        at += [f"offset {self.offset:,}"] if self.offset is not None else []
        at += [f"queue offset {self.queue_offset:,}"] if self.queue_offset is not None else []
        return ", ".join(at)


@dataclass(frozen=True, slots=True)
class StoreQueue:
    """A consume queue: its first and its next offset."""

    topic: str
    queue_id: Count
    min_offset: int
    max_offset: int
    files: Count
    size: Count
    extensions: Count


@dataclass(frozen=True, slots=True)
class StoreIndex:
    """An index file; None is unknown, for example slots where several numbers fit."""

    file: str
    size: Count
    entries: Count
    entries_max: Count | None
    slots: Count | None
    slots_used: Count | None
    chain_max: Count | None
    collisions: Count | None
    problems: Count | None
    begin_offset: int
    end_offset: int

    @property
    def health(self) -> str:
        """Its condition in a word or two."""
        if self.problems:
            return counted(self.problems, "broken link")
        if self.slots is None:
            return "empty" if not self.entries else "slots unknown"
        return "not compared" if self.problems is None else "sound"


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A small file and its content."""

    file: str
    said: str


@dataclass(frozen=True, slots=True)
class Consumer:
    """The progress of a consumer group, or of a delay level, in a queue."""

    who: str
    queue: str
    offset: int | None
    end: int | None
    lag: int | None
    state: str


@dataclass(frozen=True, slots=True)
class StoreReport:
    """Everything the page shows.

    `command` is the command that was run. `files_left_out` counts the files without a map.
    """

    command: str
    store: str
    verdict: str | None
    version: str
    figures: dict[str, Scalar]
    findings: tuple[StoreFinding, ...]
    files: tuple[FileMap, ...]
    queues: tuple[StoreQueue, ...]
    indexes: tuple[StoreIndex, ...]
    small_files: tuple[SmallFile, ...]
    consumers: tuple[Consumer, ...]
    files_left_out: Count = 0


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings of one code and severity."""

    code: str
    severity: str
    remedy: str
    findings: tuple[StoreFinding, ...]


def read_store_report(document: Mapping[str, Any]) -> StoreReport:
    """Return a document as frozen values. Raises ReportError if it has another shape."""
    return shaped(StoreReport, document, path=Path("store"), place="store")


def render_store_report(report: StoreReport, *, downloads: Sequence[Download] = ()) -> str:
    """Return the page."""
    groups = _groups(report.findings)
    lines = lines_of(report.files, [(f.file, f.position) for f in report.findings if f.position is not None])
    codes: dict[str, int] = {}
    for group in groups:
        codes[group.code] = codes.get(group.code, 0) + len(group.findings)
    return rendered(
        "store.html",
        _SCRIPTS,
        it=report,
        headline=_headline(report),
        tiles=_tiles(report),
        groups=groups,
        codes=tuple(codes.items()),
        kinds=[
            (name, [line for line in lines if line.kind == kind], _legend(report.files, kind))
            for kind, name in (("log", "Commit log"), ("queue", "Consume queues"), ("index", "Index"))
            if any(line.kind == kind for line in lines)
        ],
        downloads=downloads,
    )


def _headline(report: StoreReport) -> Headline:
    damages = sum(finding.severity == "damage" for finding in report.findings)
    tears = sum(finding.severity == "tear" for finding in report.findings)
    match report.verdict:
        case "holds":
            more = f" A crash left {counted(tears, 'torn place')} that recovery repairs." if tears else ""
            return Headline("sound", f"Everything that was promised is there and correct.{more}", "good")
        case "broken":
            places = f"{counted(damages, 'finding')} of damage"
            said = f"{places}: promised data is missing or wrong."
            return Headline("damaged", f"{said} Each finding says what to do.", "bad")
        case "unknown":
            return Headline("unknown", "Part of the store could not be judged. That is not a pass.", "unsure")
    return Headline("not judged", "Only part of the store was read.", "unsure")


def _groups(findings: Sequence[StoreFinding]) -> tuple[FindingGroup, ...]:
    """Return the findings by severity and code, the most serious first."""
    groups: dict[tuple[str, str], list[StoreFinding]] = {}
    for finding in findings:
        groups.setdefault((finding.severity, finding.code), []).append(finding)
    rank = {severity: place for place, severity in enumerate(_SEVERITIES)}
    ordered = sorted(groups.items(), key=lambda group: (rank.get(group[0][0], len(rank)), *_order(*group)))
    return tuple(FindingGroup(code, severity, some[0].remedy, tuple(some)) for (severity, code), some in ordered)


def _order(key: tuple[str, str], findings: Sequence[StoreFinding]) -> tuple[bool, int]:
    """Return the sort key of a finding; the log comes first, as the cause of others."""
    return not key[1].startswith("CL_"), -len(findings)


def _tiles(report: StoreReport) -> tuple[Tile, ...]:
    counts = [sum(finding.severity == severity for finding in report.findings) for severity in _SEVERITIES]
    logs = [file for file in report.files if file.kind == "log"]
    messages = sum(queue.max_offset - queue.min_offset for queue in report.queues)
    records = report.figures.get("records")
    tiles = [
        Tile(number(counts[0]), "damages", tone="bad" if counts[0] else "good"),
        Tile(number(counts[1]), "tears", "recovery repairs them" if counts[1] else "", "unsure" if counts[1] else ""),
        Tile(number(counts[2]), "notes"),
    ]
    if isinstance(records, int):
        tiles.append(Tile(number(records), "records", f"in {counted(len(logs), 'log file')}"))
    tiles.append(Tile(number(messages), "messages in queues", counted(len(report.queues), "queue")))
    entries = sum(index.entries for index in report.indexes)
    return (*tiles, Tile(number(entries), "index entries", counted(len(report.indexes), "index file")))


def _legend(files: Sequence[FileMap], kind: str) -> list[tuple[str, int, int, str]]:
    """Return the styles of the occurring kinds of runs, in their order."""
    there = {run.what for file in files if file.kind == kind for run in file.runs if run.size}
    return [style for what, style in RUN_STYLES.items() if what in there]
